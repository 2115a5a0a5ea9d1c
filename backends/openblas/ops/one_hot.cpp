// SPDX-License-Identifier: Apache-2.0
// ops/one_hot.cpp - one-hot encoding of class indices.
#include <tenon/sdk/element.h>

#include <algorithm>
#include <bit>

#include "elementwise/strided_copy.h"

namespace tenon::openblas {
namespace {

// Bytes worth a thread of their own: about 20 us.
constexpr std::int64_t grain_bytes = 256 * 1024;

template <class Word, class Index>
void mark(const sdk::Call& call, const sdk::AxisView& view, Word off, Word on) {
  const Index* const indices = call.input<Index>(0);
  Word* const y = call.output<Word>(0);
  const std::int64_t depth = view.n, inner = view.inner, slab = depth * inner;
  const std::int64_t share = std::max<std::int64_t>(1, grain_bytes / (slab * static_cast<std::int64_t>(sizeof(Word))));
  call.host.parallel_for(view.outer, share, [&](std::int64_t begin, std::int64_t end) {
    std::fill(y + begin * slab, y + end * slab, off);
    for (std::int64_t o = begin; o < end; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) {
        const std::int64_t index = indices[o * inner + i];
        if (index >= -depth && index < depth) y[o * slab + (index < 0 ? index + depth : index) * inner + i] = on;
      }
    }
  });
}

/// y[o, j, i] = on if indices[o, i] is j or j - depth, else off, around `axis` of y
template <class T>
void one_hot(const sdk::Call& call) {
  using Word = WordOf<T>;
  const auto& attributes = call.attr<tenon_attributes_one_hot>();
  if (call.outputs[0].count == 0) return;
  const sdk::AxisView view = sdk::around_axis(call.outputs[0], attributes.axis);
  const Word off = std::bit_cast<Word>(sdk::element_of<T>(attributes.off)), on = std::bit_cast<Word>(sdk::element_of<T>(attributes.on));
  if (call.inputs[0].dtype == TENON_DTYPE_I64) {
    mark<Word, std::int64_t>(call, view, off, on);
  } else {
    mark<Word, std::int32_t>(call, view, off, on);
  }
}

}  // namespace

TENON_KERNEL(one_hot, TENON_MOVABLE_TYPES)

}  // namespace tenon::openblas
