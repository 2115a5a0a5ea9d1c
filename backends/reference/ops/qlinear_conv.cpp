// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers, requantised.
#include <tenon/sdk/kernel.h>

#include "integer_products.h"

namespace tenon::reference {
namespace {

/// y[n, o, i...] = saturate(round(f32(sum + bias[o]) x_scale w_scale[o] / y_scale) + y_zero_point), sum that of conv_integer
///
/// Shapes  as of conv; w_scale and w_zero_point () or (O), other scales and zero points (); bias (O), or absent for 0.
/// Dtypes  x of T; w and y of i8 or u8; scales of f32, bias of i32.
template <class T>
void qlinear_conv(const sdk::Call& call) {
  with_bytes(call, 3, [&]<class W, class Y>() {
    const Requantisation<Y> requantised(call);
    const std::int32_t* const bias = call.has_input(8) ? call.input<std::int32_t>(8) : nullptr;
    Y* const y = call.output<Y>(0);
    convolve_integers<T, W>(call, {0, 2, 3, 5}, [&](std::int64_t i, std::int64_t filter, std::int64_t sum) {
      y[i] = requantised(wrapped(sum + (bias == nullptr ? 0 : bias[filter])), filter);
    });
  });
}

}  // namespace
TENON_KERNEL(qlinear_conv, std::int8_t, std::uint8_t)
}  // namespace tenon::reference
