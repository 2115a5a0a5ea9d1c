// SPDX-License-Identifier: Apache-2.0
// Products of stacks of matrices of 8-bit integers, requantised.
#include <tenon/sdk/kernel.h>

#include "integer_products.h"

namespace tenon::reference {
namespace {

/// y[s, i, j] = saturate(round(f32(sum) a_scale b_scale[j] / y_scale) + y_zero_point), sum that of matmul_integer
///
/// Shapes  as of matmul; b_scale and b_zero_point () or (n), other scales and zero points ().
/// Dtypes  a of T; b and y of i8 or u8; scales of f32.
template <class T>
void qlinear_matmul(const sdk::Call& call) {
  with_bytes(call, 3, [&]<class B, class Y>() {
    const Requantisation<Y> requantised(call);
    Y* const y = call.output<Y>(0);
    multiply_integers<T, B>(call, {0, 2, 3, 5},
                            [&](std::int64_t i, std::int64_t column, std::int64_t sum) { y[i] = requantised(wrapped(sum), column); });
  });
}

}  // namespace
TENON_KERNEL(qlinear_matmul, std::int8_t, std::uint8_t)
}  // namespace tenon::reference
