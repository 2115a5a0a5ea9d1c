// SPDX-License-Identifier: Apache-2.0
// product_types.h - the types that products and convolutions have kernels for.
#pragma once

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// body(T()) for the type of the call's elements.
template <class Body>
auto with_product_type(tenon_dtype dtype, const Body& body) {
  if (dtype == TENON_DTYPE_F64) return body(double());
  if (dtype == TENON_DTYPE_BF16) return body(sdk::BFloat16());
  return body(float());
}

}  // namespace tenon::openblas
