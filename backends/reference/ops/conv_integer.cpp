// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers.
#include <tenon/sdk/kernel.h>

#include "integer_products.h"

namespace tenon::reference {
namespace {

template <class X, class W>
void convolve(const sdk::Call& call) {
  auto* const y = call.output<std::int32_t>(0);
  convolve_integers<X, W>(call, {0, 2, 1, 3}, [y](std::int64_t i, std::int64_t, std::int64_t sum) { y[i] = wrapped(sum); });
}

/// y[n, o, i...] = sum over c, k... of (x[n, c, i strides + k dilations - pads_before] - x_zero_point) (w[o, c, k...] - w_zero_point[o]),
/// modulo 2^32, without the terms outside of x
///
/// Shapes  as of conv; x_zero_point (), w_zero_point () or (O), or absent for 0.
/// Dtypes  x of T; w of i8 or u8.
template <class T>
void conv_integer(const sdk::Call& call) {
  return call.inputs[1].dtype == TENON_DTYPE_I8 ? convolve<T, std::int8_t>(call) : convolve<T, std::uint8_t>(call);
}

}  // namespace
TENON_KERNEL(conv_integer, std::int8_t, std::uint8_t)
}  // namespace tenon::reference
