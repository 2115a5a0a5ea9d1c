// SPDX-License-Identifier: Apache-2.0
// Products of stacks of matrices of 8-bit integers.
#include <tenon/sdk/kernel.h>

#include "integer_products.h"

namespace tenon::reference {
namespace {

template <class A, class B>
void multiply(const sdk::Call& call) {
  auto* const y = call.output<std::int32_t>(0);
  multiply_integers<A, B>(call, {0, 2, 1, 3}, [y](std::int64_t i, std::int64_t, std::int64_t sum) { y[i] = wrapped(sum); });
}

/// y[s, i, j] = sum over k of (a[s, i, k] - a_zero_point[i]) (b[s, k, j] - b_zero_point[j]), modulo 2^32
///
/// Shapes  as of matmul; a_zero_point () or (m), b_zero_point () or (n), or absent for 0.
/// Dtypes  a of T; b of i8 or u8.
template <class T>
void matmul_integer(const sdk::Call& call) {
  return call.inputs[1].dtype == TENON_DTYPE_I8 ? multiply<T, std::int8_t>(call) : multiply<T, std::uint8_t>(call);
}

}  // namespace
TENON_KERNEL(matmul_integer, std::int8_t, std::uint8_t)
}  // namespace tenon::reference
