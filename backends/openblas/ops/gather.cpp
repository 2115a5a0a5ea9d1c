// SPDX-License-Identifier: Apache-2.0
// ops/gather.cpp - elements selected by indices.
#include <tenon/sdk/element.h>
#include <tenon/sdk/indices.h>

#include <algorithm>
#include <cstring>

#include "elementwise/strided_copy.h"
#include "elementwise/strided_loop.h"

namespace tenon::openblas {
namespace {

// Bytes, and single elements, worth a thread of their own: about 20 us with random access.
constexpr std::int64_t grain_bytes = 128 * 1024;
constexpr std::int64_t grain = 8 * 1024;

template <class Word>
void gather_words(const sdk::Call& call, const sdk::Indices& indices, const sdk::AxisView& view) {
  const Word* const x = call.input<Word>(0);
  Word* const y = call.output<Word>(0);
  const std::int64_t count = indices.count(), inner = view.inner, slab = view.n * inner;
  const auto run = static_cast<std::size_t>(inner) * sizeof(Word);
  const std::int64_t share = std::clamp<std::int64_t>(grain_bytes / static_cast<std::int64_t>(run), 1, grain);
  call.host.parallel_for(view.outer * count, share, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end;) {
      const Word* const from = x + i / count * slab;
      const std::int64_t stop = std::min(end, (i / count + 1) * count);
      const std::int64_t first = i / count * count;
      if (inner == 1) {
        for (; i < stop; ++i) y[i] = from[indices[i - first]];
      } else {
        for (; i < stop; ++i) std::memcpy(y + i * inner, from + indices[i - first] * inner, run);
      }
    }
  });
}

/// y[o, k, i] = x[o, indices[k], i] around `axis`; an index outside [-n, n) is an error.
template <class T>
void gather(const sdk::Call& call) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const sdk::Indices indices("gather", call.inputs[1], view.n);
  if (call.outputs[0].count > 0) gather_words<WordOf<T>>(call, indices, view);
}

template <class Word>
void gather_single_words(const sdk::Call& call, const sdk::Indices& indices) {
  const std::int64_t axis = call.attr<tenon_attributes_axis>().axis;
  const sdk::Operand &x = call.inputs[0], &y = call.outputs[0];
  const std::int64_t step = x.strides[axis];
  std::int64_t strides[TENON_MAX_RANK];
  std::copy_n(x.strides, x.rank, strides);
  strides[axis] = 0;  // along the axis the indices select the element
  sdk::Operand lines = y;
  lines.strides = strides;
  const StridedLoop<1> loop = strided_loop_over<1>(y, {&lines});
  const Word* const from = x.as<const Word>();
  Word* const to = y.as<Word>();
  call.host.parallel_for(loop.count, grain, [&](std::int64_t begin, std::int64_t end) {
    for_each_run(loop, begin, end, [&](const std::array<std::int64_t, 1>& offset, std::int64_t at, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) to[at + i] = from[offset[0] + i * loop.run_stride(0) + indices[at + i] * step];
    });
  });
}

/// y[..., j, ...] = x[..., indices[..., j, ...], ...] along `axis`; an index outside [-n, n) is an error.
template <class T>
void gather_elements(const sdk::Call& call) {
  const sdk::Indices indices("gather_elements", call.inputs[1], call.inputs[0].shape[call.attr<tenon_attributes_axis>().axis]);
  if (call.outputs[0].count > 0) gather_single_words<WordOf<T>>(call, indices);
}

}  // namespace

TENON_KERNEL(gather, TENON_MOVABLE_TYPES)
TENON_KERNEL(gather_elements, TENON_MOVABLE_TYPES)

}  // namespace tenon::openblas
