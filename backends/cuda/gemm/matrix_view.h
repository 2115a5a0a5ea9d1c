// SPDX-License-Identifier: Apache-2.0
// matrix_view.h - the description of a matrix operand for cuBLASLt. Host side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <tenon/sdk/matrix_view.h>

namespace tenon::cuda {

/// A factor of y' = b' a' in column-major terms: the stored matrix is (rows, columns) with a leading dimension; `transposed` if the factor
/// is its transpose.
struct LtMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t ld = 0;
  bool transposed = false;
};

/// x' as cuBLASLt can read it in place; none for strides that it cannot read.
inline std::optional<LtMatrix> lt_matrix(const sdk::MatrixView& x) {
  const auto layout = sdk::blas_layout(x);
  if (!layout) return std::nullopt;
  return layout->transposed ? LtMatrix{x.rows, x.columns, layout->ld, true} : LtMatrix{x.columns, x.rows, layout->ld, false};
}

/// The power of two up to 256 that divides an address or a stride in bytes: some algorithms need 16 bytes.
inline std::uint32_t alignment_of(std::uint64_t address) {
  return address == 0 ? 256u : static_cast<std::uint32_t>(std::min<std::uint64_t>(address & (~address + 1), 256));
}

}  // namespace tenon::cuda
