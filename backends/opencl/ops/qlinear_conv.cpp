// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers, requantised.
#include "kernel/integer_products.h"

namespace tenon::opencl {
namespace {

template <class T>
void qlinear_conv(const sdk::Call& call) {
  convolve_integers(call, {.a = 0, .a_zero_point = 2, .b = 3, .b_zero_point = 5, .requantised = true});
}

}  // namespace
TENON_KERNEL_WITH(qlinear_conv, (sdk::Traits{.refuse = refuse_volumes}), std::int8_t, std::uint8_t)
}  // namespace tenon::opencl
