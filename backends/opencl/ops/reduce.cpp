// SPDX-License-Identifier: Apache-2.0
// Reductions over any set of axes. Attributes: axes, ascending, none means all; keepdims changes only the shape of y.
#include <tenon/sdk/kernel.h>

#include "kernel/lanes.h"
#include "kernel/layout.h"

namespace tenon::opencl {
namespace {

/// The dimensions of x that are kept, or those that are reduced.
Layout dimensions(const sdk::Call& call, bool reduced) {
  const auto& attributes = call.attr<tenon_attributes_axes>();
  const sdk::Operand& x = call.inputs[0];
  std::int64_t shape[TENON_MAX_RANK];
  std::array<sdk::Strides, 1> strides{};
  std::uint32_t rank = 0, next = 0;  // axes are ascending
  for (std::uint32_t d = 0; d < x.rank; ++d) {
    const bool listed = next < attributes.count && attributes.axes[next] == d;
    if (listed) ++next;
    if ((listed || attributes.count == 0) != reduced) continue;
    shape[rank] = x.shape[d];
    strides[0][rank++] = x.strides[d];
  }
  return collapse<1>(shape, rank, strides);
}

template <class T>
void reduce(const sdk::Call& call, const char* function) {
  const Layout kept = dimensions(call, false), reduced = dimensions(call, true);
  if (kept.count == 0) return;
  const std::uint32_t width = lanes_for(reduced.count);
  Launch(call, sources::reduce, function, types<T>())
      .value(kept)
      .value(reduced)
      .out(call, 0)
      .in(call, 0)
      .value(width)
      .over(kept.count * width);
}

const char* refuse_empty(const sdk::Call& call) {
  return call.inputs[0].count == 0 && call.outputs[0].count > 0 ? "the axes are empty; expected at least one element" : nullptr;
}

constexpr sdk::Traits traits{.strided = true};
constexpr sdk::Traits choosing{.strided = true, .refuse = refuse_empty};

}  // namespace

#define TENON_REDUCTION(stem, traits, ...) \
  namespace {                              \
  template <class T>                       \
  void stem(const sdk::Call& call) {       \
    reduce<T>(call, #stem);                \
  }                                        \
  }                                        \
  TENON_KERNEL_WITH(stem, traits, __VA_ARGS__)
TENON_REDUCTION(reduce_sum, traits, float, double, std::int32_t, std::int64_t)
TENON_REDUCTION(reduce_mean, traits, float, double)
TENON_REDUCTION(reduce_max, choosing, float, double, std::int32_t, std::int64_t)
TENON_REDUCTION(reduce_min, choosing, float, double, std::int32_t, std::int64_t)
TENON_REDUCTION(reduce_prod, traits, float, double, std::int32_t, std::int64_t)
TENON_REDUCTION(reduce_l1, traits, float, double)
TENON_REDUCTION(reduce_l2, traits, float, double)
TENON_REDUCTION(reduce_sum_square, traits, float, double)
TENON_REDUCTION(reduce_log_sum_exp, traits, float, double)
}  // namespace tenon::opencl
