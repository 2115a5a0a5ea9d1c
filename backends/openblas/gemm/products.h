// SPDX-License-Identifier: Apache-2.0
// products.h - matrix products, divided into blocks for the host's threads: by our own tiles where those are faster (tile_products.h), else
// by OpenBLAS's serial routines.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/matrix_view.h>

#include "elementwise/strided_loop.h"
#include "gemm/epilogue.h"

namespace tenon::openblas {

/// Whether OpenBLAS can read the matrix without a copy.
bool fits_blas(const sdk::MatrixView& x);

/// y = epilogue(alpha a b), with y (m, n) dense, a (m, k), b (k, n).
template <class T>
struct Product {
  sdk::MatrixView a_view;  ///< fits_blas()
  sdk::MatrixView b_view;  ///< fits_blas()
  T alpha = 1;
  const T* a = nullptr;
  const T* b = nullptr;
  T* y = nullptr;
  Epilogue<T> epilogue;
};

/// A product for every entry of `batch`, whose operands 0 and 1 are a and b and whose strides step from matrix to matrix; results are
/// contiguous from product.y on. Blocks of the results are shared among the host's threads where that pays. With `deterministic` the
/// blocks, and hence the bits, depend only on the shape.
void multiply(const sdk::Host& host, bool deterministic, const Product<float>& product, const StridedLoop<2>& batch);
void multiply(const sdk::Host& host, bool deterministic, const Product<double>& product, const StridedLoop<2>& batch);

/// Throws unless the sizes fit the 32-bit integers of this OpenBLAS.
void check_sizes(const char* op, std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace tenon::openblas
