// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers.
#include "kernel/integer_convolution.cuh"

namespace tenon::cuda {
namespace {

template <class X, class W>
void convolve(const sdk::Call& call) {
  convolve_integers<X, W>(call, sum_operands, StoreSums{call.output<std::int32_t>(0)});
}

/// y[n, o, i...] = sum over c, k... of (x[n, c, i strides + k dilations - pads_before] - x_zero_point) (w[o, c, k...] - w_zero_point[o]),
/// modulo 2^32, without the terms outside of x
///
/// Shapes  as of conv; x_zero_point (), w_zero_point () or (O), or absent for 0.
/// Dtypes  x of T; w of i8 or u8.
template <class T>
void conv_integer(const sdk::Call& call) {
  if (call.outputs[0].count == 0) return;
  return call.inputs[1].dtype == TENON_DTYPE_I8 ? convolve<T, std::int8_t>(call) : convolve<T, std::uint8_t>(call);
}

}  // namespace
TENON_KERNEL(conv_integer, std::int8_t, std::uint8_t)
}  // namespace tenon::cuda
