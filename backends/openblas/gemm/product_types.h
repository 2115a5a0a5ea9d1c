// SPDX-License-Identifier: Apache-2.0
// product_types.h - the types that products and convolutions have kernels for.
#pragma once

#include <type_traits>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// The type of the sums of products of T.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, sdk::BFloat16>, float, T>;

/// body(T()) for the type of the call's elements.
template <class Body>
auto with_product_type(tenon_dtype dtype, const Body& body) {
  if (dtype == TENON_DTYPE_F64) return body(double());
  if (dtype == TENON_DTYPE_BF16) return body(sdk::BFloat16());
  return body(float());
}

}  // namespace tenon::openblas
