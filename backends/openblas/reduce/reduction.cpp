// SPDX-License-Identifier: Apache-2.0
#include "reduce/reduction.h"

#include <bit>

namespace tenon::openblas {
namespace {

// A reduction with fewer tasks than this, over enough elements, is divided into at most max_parts parts of the reduced elements.
constexpr std::int64_t few_tasks = 16;
constexpr std::int64_t max_parts = 32;

/// The reduced or the kept dimensions of x, neighbours merged where strides allow it, without dimensions of size 1.
StridedLoop<1> dimensions_of(const sdk::Operand& x, const tenon_attributes_axes& attributes, bool reduced) {
  StridedLoop<1> out;
  std::uint32_t rank = 0;
  std::uint32_t next = 0;  // axes are ascending
  for (std::uint32_t i = 0; i < x.rank; ++i) {
    const bool listed = next < attributes.count && attributes.axes[next] == static_cast<std::int64_t>(i);
    if (listed) ++next;
    out.count *= (listed || attributes.count == 0) == reduced ? x.shape[i] : 1;
    if ((listed || attributes.count == 0) != reduced || x.shape[i] == 1) continue;
    if (rank > 0 && out.strides[0][rank - 1] == x.strides[i] * x.shape[i]) {
      out.shape[rank - 1] *= x.shape[i];
    } else {
      out.shape[rank++] = x.shape[i];
    }
    out.strides[0][rank - 1] = x.strides[i];
  }
  out.rank = std::max<std::uint32_t>(rank, 1);
  return out;
}

}  // namespace

StridedLoop<1> without(const StridedLoop<1>& dimensions, std::uint32_t removed) {
  StridedLoop<1> out;
  std::uint32_t rank = 0;
  for (std::uint32_t i = 0; i < dimensions.rank; ++i) {
    if (i == removed) continue;
    out.shape[rank] = dimensions.shape[i];
    out.strides[0][rank++] = dimensions.strides[0][i];
    out.count *= dimensions.shape[i];
  }
  out.rank = std::max<std::uint32_t>(rank, 1);
  return out;
}

ReductionMethod method_of(const sdk::Call& call, std::int64_t elements) {
  const sdk::Operand& x = call.inputs[0];
  const auto& attributes = call.attr<tenon_attributes_axes>();
  ReductionMethod m{dimensions_of(x, attributes, false), dimensions_of(x, attributes, true), false, 0, 0, 1, 1, 1, 1};
  const std::int64_t width = m.kept.shape[m.kept.rank - 1];
  m.by_columns = m.kept.run_stride(0) == 1 && width > 1;
  m.inner = m.reduced.rank - 1;
  for (std::uint32_t i = 0; i < m.reduced.rank; ++i) {
    if (!m.by_columns && m.reduced.strides[0][i] == 1) m.inner = i;
    if (m.reduced.shape[i] > m.reduced.shape[m.split]) m.split = i;
  }
  m.tasks = m.kept.count;
  if (m.by_columns && width > 0) m.tasks = m.kept.count / width * ((width + reduction_strip - 1) / reduction_strip);
  if (m.tasks > 0) {
    m.grain = std::max<std::int64_t>(1, elements / std::max<std::int64_t>(x.count / m.tasks, 1));
    if (m.tasks < few_tasks && x.count >= 2 * elements) {
      // A power of two of parts, four for each thread they are worth, is divided evenly among most numbers of threads.
      const std::int64_t worth = std::clamp<std::int64_t>(x.count / m.tasks / elements, 1, max_parts);
      const auto threads = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(worth)));
      if (threads > 1) m.parts = std::min({4 * threads, max_parts, m.reduced.shape[m.split]});
      m.part_grain = std::max<std::int64_t>(1, m.parts / threads);
    }
  }
  return m;
}

}  // namespace tenon::openblas
