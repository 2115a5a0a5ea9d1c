// SPDX-License-Identifier: Apache-2.0
// products.h - matrix products by OpenBLAS's serial routines, divided into blocks for the host's threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "elementwise/strided_loop.h"
#include "gemm/epilogue.h"

namespace tenon::openblas {

/// A strided matrix: element (i, j) is at data[i * row_stride + j * column_stride].
struct MatrixView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;

  MatrixView transposed() const { return {columns, rows, column_stride, row_stride}; }
  /// Whether BLAS can read it without a copy: one stride is 1, the other is at least the size of that dimension.
  bool fits_blas() const;
};

/// y = epilogue(alpha a b), with y (m, n) dense, a (m, k), b (k, n).
template <class T>
struct Product {
  MatrixView a_view;  ///< fits_blas()
  MatrixView b_view;  ///< fits_blas()
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

/// Bytes of a dense copy in a call's scratch memory, rounded up to keep the alignment.
inline std::size_t copy_bytes(const sdk::Operand& x, std::size_t element_size) {
  return (static_cast<std::size_t>(x.count) * element_size + 63) / 64 * 64;
}

}  // namespace tenon::openblas
