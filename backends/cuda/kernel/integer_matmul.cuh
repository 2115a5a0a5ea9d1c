// SPDX-License-Identifier: Apache-2.0
// integer_matmul.cuh - products of stacks of matrices of 8-bit integers: one thread for each result.
#pragma once

#include <cstdint>

#include "kernel/integer_products.cuh"
#include "kernel/launch.h"
#include "kernel/layout.h"
#include "kernel/operands.h"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {

/// y (stack, rows, columns); the stack's strides in a and b are those of `stacks`.
template <class A, class B>
struct IntegerProduct {
  Layout<2> stacks;
  std::int64_t count, rows, columns, k;
  const A* a;
  const B* b;
  const A* a_zero_point;  ///< NULL: 0
  const B* b_zero_point;
  bool zero_per_row, zero_per_column;
};

/// finish(e, column, sum) for each element e of the result.
template <class A, class B, class Finish>
__global__ void integer_product_kernel(IntegerProduct<A, B> p, Finish finish) {
  for (std::int64_t e = thread_index(); e < p.count; e += thread_count()) {
    const std::int64_t row = quotient(e, p.columns), j = e - row * p.columns;
    const std::int64_t stack = quotient(row, p.rows), i = row - stack * p.rows;
    std::int64_t at[2];
    place(p.stacks, stack, at);
    const A* const a = p.a + at[0] + i * p.k;
    const B* const b = p.b + at[1] + j;
    const int a_zero = p.a_zero_point == nullptr ? 0 : p.a_zero_point[p.zero_per_row ? i : 0];
    const int b_zero = p.b_zero_point == nullptr ? 0 : p.b_zero_point[p.zero_per_column ? j : 0];
    std::uint32_t sum = 0;  // wraps
    for (std::int64_t k = 0; k < p.k; ++k) sum += static_cast<std::uint32_t>((a[k] - a_zero) * (b[k * p.columns] - b_zero));
    finish(e, j, sum);
  }
}

template <class A, class B, class Finish>
void multiply_integers(const sdk::Call& call, const IntegerOperands& at, const Finish& finish) {
  const sdk::Operand &a = call.inputs[at.a], &b = call.inputs[at.b], &y = call.outputs[0];
  IntegerProduct<A, B> p;
  p.count = y.count;
  p.k = a.shape[a.rank - 1];
  p.rows = a.rank == 1 ? 1 : a.shape[a.rank - 2];
  p.columns = b.rank == 1 ? 1 : b.shape[b.rank - 1];
  sdk::Operand left = a, right = b;  // the stacks, without the dimensions of the matrices
  left.rank = a.rank < 2 ? 0 : a.rank - 2;
  right.rank = b.rank < 2 ? 0 : b.rank - 2;
  const std::uint32_t rank = y.rank - (a.rank > 1 ? 1 : 0) - (b.rank > 1 ? 1 : 0);
  p.stacks = collapse<2>(y.shape, rank, {sdk::broadcast_strides(left, rank), sdk::broadcast_strides(right, rank)});
  p.a = call.input<A>(at.a);
  p.b = call.input<B>(at.b);
  p.a_zero_point = input_or_null<A>(call, at.a_zero_point);
  p.b_zero_point = input_or_null<B>(call, at.b_zero_point);
  p.zero_per_row = call.has_input(at.a_zero_point) && call.inputs[at.a_zero_point].rank == 1;
  p.zero_per_column = call.has_input(at.b_zero_point) && call.inputs[at.b_zero_point].rank == 1;
  launch_over(call, p.count, integer_product_kernel<A, B, Finish>, p, finish);
}

}  // namespace tenon::cuda
