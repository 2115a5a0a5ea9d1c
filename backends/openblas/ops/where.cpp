// SPDX-License-Identifier: Apache-2.0
// ops/where.cpp - elementwise selection with NumPy broadcasting. Elements are moved as words of their size, in plain loops that the
// compiler vectorises.
#include <tenon/sdk/element.h>

#include "elementwise/strided_copy.h"
#include "elementwise/strided_loop.h"

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us from L2.
constexpr std::int64_t grain = 128 * 1024;

/// y[i] = condition[i] ? a[i] : b[i], where an operand of stride 0 is one element. Both sides are read, because a choice between addresses
/// would not be vectorised.
template <class Word, bool one_a, bool one_b>
void choose(const std::uint8_t* condition, const Word* a, const Word* b, Word* y, std::int64_t n) {
  const Word first_a = *a, first_b = *b;
  for (std::int64_t i = 0; i < n; ++i) {
    const Word from_a = one_a ? first_a : a[i], from_b = one_b ? first_b : b[i];
    y[i] = condition[i] != 0 ? from_a : from_b;
  }
}

/// Processes n > 0 elements of operands with the given strides.
template <class Word>
void run(const std::uint8_t* condition, const Word* a, const Word* b, const std::array<std::int64_t, 3>& strides, Word* y, std::int64_t n) {
  const bool straight_a = strides[1] == 0 || strides[1] == 1, straight_b = strides[2] == 0 || strides[2] == 1;
  if (strides[0] == 1 && straight_a && straight_b) {
    if (strides[1] == 1 && strides[2] == 1) return choose<Word, false, false>(condition, a, b, y, n);
    if (strides[1] == 1) return choose<Word, false, true>(condition, a, b, y, n);
    if (strides[2] == 1) return choose<Word, true, false>(condition, a, b, y, n);
    return choose<Word, true, true>(condition, a, b, y, n);
  }
  for (std::int64_t i = 0; i < n; ++i) y[i] = condition[i * strides[0]] != 0 ? a[i * strides[1]] : b[i * strides[2]];
}

/// y = condition ? a : b
template <class T>
void where(const sdk::Call& call) {
  using Word = WordOf<T>;
  const StridedLoop<3> loop = strided_loop_over<3>(call.outputs[0], {&call.inputs[0], &call.inputs[1], &call.inputs[2]});
  const auto* condition = call.input<std::uint8_t>(0);
  const auto* a = call.input<Word>(1);
  const auto* b = call.input<Word>(2);
  auto* y = call.output<Word>(0);
  const std::array<std::int64_t, 3> strides{loop.run_stride(0), loop.run_stride(1), loop.run_stride(2)};
  call.host.parallel_for(loop.count, grain, [&](std::int64_t begin, std::int64_t end) {
    for_each_run(loop, begin, end, [&](const std::array<std::int64_t, 3>& offsets, std::int64_t at, std::int64_t n) {
      run(condition + offsets[0], a + offsets[1], b + offsets[2], strides, y + at, n);
    });
  });
}

}  // namespace

TENON_KERNEL_WITH(where, elementwise_traits, TENON_MOVABLE_TYPES)

}  // namespace tenon::openblas
