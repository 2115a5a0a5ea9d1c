// SPDX-License-Identifier: Apache-2.0
// ops/qlinear_matmul.cpp - products of matrices of 8-bit integers, whose sums are requantised while they are in registers.
#include "quantize/integer_matmul.h"

namespace tenon::openblas {
namespace {

/// y = saturate(round(f32(sum) a_scale b_scale / y_scale) + y_zero_point), sum that of matmul_integer
template <class T>
void qlinear_matmul(const sdk::Call& call) {
  if (call.outputs[0].count != 0) integer_matmul(call, requantised_operands);
}

}  // namespace

TENON_KERNEL_WITH(qlinear_matmul, integer_matmul_traits<requantised_operands>, std::int8_t, std::uint8_t)

}  // namespace tenon::openblas
