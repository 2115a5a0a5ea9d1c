// SPDX-License-Identifier: Apache-2.0
// ops/matmul_integer.cpp - products of matrices of 8-bit integers.
#include "quantize/integer_matmul.h"

namespace tenon::openblas {
namespace {

/// y = (a - a_zero_point) (b - b_zero_point), modulo 2^32
template <class T>
void matmul_integer(const sdk::Call& call) {
  if (call.outputs[0].count != 0) integer_matmul(call, sum_operands);
}

}  // namespace

TENON_KERNEL_WITH(matmul_integer, integer_matmul_traits<sum_operands>, std::int8_t, std::uint8_t)

}  // namespace tenon::openblas
