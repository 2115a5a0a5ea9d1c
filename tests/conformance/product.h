// SPDX-License-Identifier: Apache-2.0
// product.h - helpers that the families of matrix products share.
#pragma once

#include "case.h"

namespace tenon::conformance {

/// Sums of k products of numbers up to 2. In any order they are off by k epsilon / 2 times the sum of magnitudes, 4 k; kernels sum by
/// blocks, which brings the first k down to about its root.
Bound product_bound(std::int64_t k, tenon_dtype dtype);

/// A product whose result takes a bias, a residual and an activation. `adds`: c of a Gemm is a matrix.
struct Layer {
  tenon_op op;
  AttributeBytes attributes;
  Dims a, b, y;
  std::int64_t k;
  bool adds = false;
};
/// Checks that product, bias, residual, activation and the gradient of a relu give the same results with and without fusion.
void check_fused_epilogue(CaseContext& context, tenon_dtype dtype, const Layer& layer);

}  // namespace tenon::conformance
