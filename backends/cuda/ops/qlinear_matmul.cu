// SPDX-License-Identifier: Apache-2.0
// Products of stacks of matrices of 8-bit integers, requantised.
#include "kernel/integer_matmul.cuh"

namespace tenon::cuda {
namespace {

/// y[s, i, j] = saturate(round(f32(sum) a_scale b_scale[j] / y_scale) + y_zero_point), sum that of matmul_integer
///
/// Shapes  as of matmul; b_scale and b_zero_point () or (n), other scales and zero points ().
/// Dtypes  a of T; b and y of i8 or u8; scales of f32.
template <class T>
void qlinear_matmul(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  with_bytes(call, [&]<class B, class Y>() { multiply_integers<T, B>(call, requantised_operands, Requantise<Y>(call)); });
}

}  // namespace
TENON_KERNEL(qlinear_matmul, std::int8_t, std::uint8_t)
}  // namespace tenon::cuda
