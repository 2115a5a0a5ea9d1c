// products.h - matrix products by OpenBLAS's serial routines, cut into blocks for the host's threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "finish.h"
#include "walk.h"

namespace tenon::openblas {

/// A matrix as a view says it lies: element (i, j) at data[i * row_stride + j * column_stride].
struct MatrixView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;

  MatrixView transposed() const { return {columns, rows, column_stride, row_stride}; }
  /// BLAS reads it where it lies: one of the strides is 1, the other reaches over it.
  bool served() const;
};

/// y = finish(alpha a b), with y (m, n) dense, a (m, k), b (k, n).
template <class T>
struct Product {
  MatrixView a_view;  ///< served()
  MatrixView b_view;  ///< served()
  T alpha = 1;
  const T* a = nullptr;
  const T* b = nullptr;
  T* y = nullptr;
  Finish<T> finish;
};

/// A product for every entry of `batch`, whose operands 0 and 1 are a and b and whose strides step from matrix to matrix; results lie one
/// after the other from product.y on. Blocks of the results are shared among the host's threads where that pays. With `deterministic` the
/// blocks, and so the bits, depend on the shape alone.
void multiply(const sdk::Host& host, bool deterministic, const Product<float>& product, const Walk<2>& batch);
void multiply(const sdk::Host& host, bool deterministic, const Product<double>& product, const Walk<2>& batch);

/// Throws unless the sizes fit the 32-bit integers of this OpenBLAS.
void check_sizes(const char* op, std::int64_t m, std::int64_t n, std::int64_t k);

/// Bytes of a dense copy in a call's scratch memory, kept aligned.
inline std::size_t copy_bytes(const sdk::Operand& x, std::size_t element_size) {
  return (static_cast<std::size_t>(x.count) * element_size + 63) / 64 * 64;
}

}  // namespace tenon::openblas
