// SPDX-License-Identifier: Apache-2.0
// Products of stacks of matrices of 8-bit integers.
#include "kernel/integer_matmul.cuh"

namespace tenon::cuda {
namespace {

template <class A, class B>
void multiply(const sdk::Call& call) {
  multiply_integers<A, B>(call, sum_operands, StoreSums{call.output<std::int32_t>(0)});
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
