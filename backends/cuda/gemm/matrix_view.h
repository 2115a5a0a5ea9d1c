// SPDX-License-Identifier: Apache-2.0
// matrix_view.h - the strides of a matrix operand, and its description for cuBLASLt. Host side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace tenon::cuda {

/// Element (i, j) at data[i * row_stride + j * column_stride].
struct MatrixView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;

  MatrixView transposed() const { return {columns, rows, column_stride, row_stride}; }
};

/// A factor of y' = b' a' in column-major terms: the stored matrix is (rows, columns) with a leading dimension; `transposed` if the factor
/// is its transpose.
struct LtMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t ld = 0;
  bool transposed = false;
};

/// x' as cuBLASLt can read it in place: one stride must be 1 and the other at least the length of a line. None for other strides.
inline std::optional<LtMatrix> lt_matrix(const MatrixView& x) {
  const auto at_least_1 = [](std::int64_t n) { return std::max<std::int64_t>(n, 1); };
  // A dimension of one element may have any stride.
  if (x.columns <= 1 || x.column_stride == 1) {
    const std::int64_t ld = x.rows <= 1 ? at_least_1(x.columns) : x.row_stride;
    if (ld >= at_least_1(x.columns)) return LtMatrix{x.columns, x.rows, ld, false};
  }
  if (x.rows <= 1 || x.row_stride == 1) {
    const std::int64_t ld = x.columns <= 1 ? at_least_1(x.rows) : x.column_stride;
    if (ld >= at_least_1(x.rows)) return LtMatrix{x.rows, x.columns, ld, true};
  }
  return std::nullopt;
}

/// The power of two up to 256 that divides an address or a stride in bytes: some algorithms need 16 bytes.
inline std::uint32_t alignment_of(std::uint64_t address) {
  return address == 0 ? 256u : static_cast<std::uint32_t>(std::min<std::uint64_t>(address & (~address + 1), 256));
}

}  // namespace tenon::cuda
