// SPDX-License-Identifier: Apache-2.0
// ops/conv_integer.cpp - convolution of 8-bit integers.
#include "quantize/integer_conv.h"

namespace tenon::openblas {
namespace {

/// y = conv(x - x_zero_point, w - w_zero_point), modulo 2^32
template <class T>
void conv_integer(const sdk::Call& call) {
  if (call.outputs[0].count != 0) integer_conv(call, sum_operands);
}

}  // namespace

TENON_KERNEL_WITH(conv_integer, integer_conv_traits<sum_operands>, std::int8_t, std::uint8_t)

}  // namespace tenon::openblas
