// SPDX-License-Identifier: Apache-2.0
// ops/qlinear_conv.cpp - convolution of 8-bit integers, whose sums are requantised while they are in registers.
#include "quantize/integer_conv.h"

namespace tenon::openblas {
namespace {

/// y = saturate(round(f32(sum + bias) x_scale w_scale / y_scale) + y_zero_point), sum that of conv_integer
template <class T>
void qlinear_conv(const sdk::Call& call) {
  if (call.outputs[0].count != 0) integer_conv(call, requantised_operands);
}

}  // namespace

TENON_KERNEL_WITH(qlinear_conv, integer_conv_traits<requantised_operands>, std::int8_t, std::uint8_t)

}  // namespace tenon::openblas
