// SPDX-License-Identifier: Apache-2.0
// bf16_products.h - products of matrices of bf16 that lie in memory as they are: b is packed in the scratch memory of the call, if it was
// not packed ahead of it, and so is a copy of a whose rows are not contiguous.
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/matrix_view.h>

#include "elementwise/strided_loop.h"

namespace tenon::openblas {

/// y = relu_grad(activation(alpha a b + bias + beta c)), with a (m, k), b (k, n), y and c (m, n) dense, bias (n).
struct Bf16Product {
  sdk::MatrixView a_view, b_view;
  const sdk::BFloat16* a = nullptr;
  const sdk::BFloat16* b = nullptr;
  const sdk::BFloat16* panels = nullptr;  ///< of b, packed by pack_matrix; NULL: b is packed
  sdk::BFloat16* y = nullptr;
  const sdk::BFloat16* bias = nullptr;  ///< or NULL
  const sdk::BFloat16* c = nullptr;     ///< or NULL
  float alpha = 1, beta = 1;
  sdk::Activation activation = {};
  const sdk::BFloat16* relu_result = nullptr;  ///< as of sdk::Epilogue, for all entries; or NULL
};

/// Scratch memory of a product for each of `count` entries of a batch.
std::size_t bf16_product_scratch(const sdk::Host& host, const Bf16Product& product, std::int64_t count);

/// A product for every entry of `batch`, whose operands 0 and 1 are a and b and whose strides step from matrix to matrix; results are
/// contiguous from product.y on. Bits do not depend on the number of threads.
void multiply(const sdk::Host& host, const Bf16Product& product, const StridedLoop<2>& batch, void* scratch);

}  // namespace tenon::openblas
