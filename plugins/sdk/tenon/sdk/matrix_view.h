// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/matrix_view.h - matrices of any strides, and how a BLAS reads them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace tenon::sdk {

/// The sizes and strides of a matrix: element (i, j) is at data[i * row_stride + j *
/// column_stride].
struct MatrixView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;

  MatrixView transposed() const { return {columns, rows, column_stride, row_stride}; }
};

/// A matrix as an operand of a row-major BLAS: its rows are contiguous and `ld` apart, or, if
/// `transposed`, its columns are.
struct BlasLayout {
  bool transposed = false;
  std::int64_t ld = 0;
};

/// How a BLAS reads the matrix in place. None if no stride is 1, if lines overlap, or if the
/// leading dimension would exceed `max_ld`. A dimension of one element may have any stride.
inline std::optional<BlasLayout> blas_layout(const MatrixView& x, std::int64_t max_ld = std::numeric_limits<std::int64_t>::max()) {
  for (const bool transposed : {false, true}) {
    const MatrixView lines = transposed ? x.transposed() : x;
    if (lines.columns > 1 && lines.column_stride != 1) continue;
    const std::int64_t line = std::max<std::int64_t>(lines.columns, 1);
    const std::int64_t ld = lines.rows <= 1 ? line : lines.row_stride;
    if (ld >= line && ld <= max_ld) return BlasLayout{transposed, ld};
  }
  return std::nullopt;
}

}  // namespace tenon::sdk
