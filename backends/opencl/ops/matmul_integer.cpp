// SPDX-License-Identifier: Apache-2.0
// Products of stacks of matrices of 8-bit integers.
#include "kernel/integer_products.h"

namespace tenon::opencl {
namespace {

template <class T>
void matmul_integer(const sdk::Call& call) {
  multiply_integers(call, {.a = 0, .a_zero_point = 2, .b = 1, .b_zero_point = 3, .requantised = false});
}

}  // namespace
TENON_KERNEL(matmul_integer, std::int8_t, std::uint8_t)
}  // namespace tenon::opencl
