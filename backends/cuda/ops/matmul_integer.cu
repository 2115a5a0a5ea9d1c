// SPDX-License-Identifier: Apache-2.0
// Products of stacks of matrices of 8-bit integers: one thread for each result.
#include <cstdint>

#include "kernel/launch.h"
#include "kernel/layout.h"
#include "kernel/operands.h"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {
namespace {

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

template <class A, class B>
__global__ void multiply_integers(IntegerProduct<A, B> p, std::int32_t* y) {
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
    y[e] = static_cast<std::int32_t>(sum);
  }
}

template <class A, class B>
void multiply(const sdk::Call& call) {
  const sdk::Operand &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
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
  p.a = call.input<A>(0);
  p.b = call.input<B>(1);
  p.a_zero_point = input_or_null<A>(call, 2);
  p.b_zero_point = input_or_null<B>(call, 3);
  p.zero_per_row = call.has_input(2) && call.inputs[2].rank == 1;
  p.zero_per_column = call.has_input(3) && call.inputs[3].rank == 1;
  launch_over(call, p.count, multiply_integers<A, B>, p, call.output<std::int32_t>(0));
}

/// y[s, i, j] = sum over k of (a[s, i, k] - a_zero_point[i]) (b[s, k, j] - b_zero_point[j]), modulo 2^32
///
/// Shapes  as of matmul; a_zero_point () or (m), b_zero_point () or (n), or absent for 0.
/// Dtypes  a of T; b of i8 or u8.
template <class T>
void matmul_integer(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  return call.inputs[1].dtype == TENON_DTYPE_I8 ? multiply<T, std::int8_t>(call) : multiply<T, std::uint8_t>(call);
}

}  // namespace
TENON_KERNEL(matmul_integer, std::int8_t, std::uint8_t)
}  // namespace tenon::cuda
