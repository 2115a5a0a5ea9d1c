// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers, requantised.
#include "kernel/integer_convolution.cuh"

namespace tenon::cuda {
namespace {

/// y[n, o, i...] = saturate(round(f32(sum + bias[o]) x_scale w_scale[o] / y_scale) + y_zero_point), sum that of conv_integer
///
/// Shapes  as of conv; w_scale and w_zero_point () or (O), other scales and zero points (); bias (O), or absent for 0.
/// Dtypes  x of T; w and y of i8 or u8; scales of f32, bias of i32.
template <class T>
void qlinear_conv(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  with_bytes(call, [&]<class W, class Y>() { convolve_integers<T, W>(call, requantised_operands, Requantise<Y>(call)); });
}

}  // namespace
TENON_KERNEL(qlinear_conv, std::int8_t, std::uint8_t)
}  // namespace tenon::cuda
