// SPDX-License-Identifier: Apache-2.0
// tiling.h - how a product is divided into blocks for several threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <tenon/sdk/rounding.h>

namespace tenon::openblas {

// Blocks begin at multiples of the register tile of OpenBLAS's kernels, in rows and columns of a row-major result.
inline constexpr std::int64_t row_tile = 4;
inline constexpr std::int64_t column_tile = 16;

/// Multiply-adds that make a block of a product worth handing to a thread, about 15 us of f32. Below this size OpenBLAS 0.3.21 may switch
/// to kernels that round in another order; above it the bits of f32 do not depend on the tiling, nor do those of f64 except in its last
/// columns.
inline constexpr double smallest_product_block = 1e6;
/// The same for products with one row or column, which are bound by memory bandwidth.
inline constexpr double smallest_vector_block = 64e3;

inline double smallest_block(std::int64_t m, std::int64_t n) {
  return m == 1 || n == 1 ? smallest_vector_block : smallest_product_block;
}

/// The result is divided into blocks of rows x columns; the last ones may be smaller.
struct Tiling {
  std::int64_t rows, columns;
  std::int64_t row_blocks, column_blocks;
  std::int64_t blocks() const { return row_blocks * column_blocks; }
};

/// A tiling of about `pieces` blocks that are as square as possible, because every block packs its rows of a and columns of b.
inline Tiling tile_into(std::int64_t m, std::int64_t n, std::int64_t pieces) {
  std::int64_t best_rows = 1;
  double best_packing = std::numeric_limits<double>::infinity();
  for (std::int64_t r = pieces; r >= 1; --r) {
    if (pieces % r != 0) continue;
    const double packing = static_cast<double>(m) / static_cast<double>(r) + static_cast<double>(n) / static_cast<double>(pieces / r);
    if (packing < best_packing) {
      best_packing = packing;
      best_rows = r;
    }
  }
  Tiling tiling{};
  tiling.rows = best_rows == 1 ? m : sdk::round_up(sdk::ceil_div(m, best_rows), row_tile);
  tiling.columns = best_rows == pieces ? n : sdk::round_up(sdk::ceil_div(n, pieces / best_rows), column_tile);
  tiling.row_blocks = sdk::ceil_div(m, tiling.rows);
  tiling.column_blocks = sdk::ceil_div(n, tiling.columns);
  return tiling;
}

/// One block per thread, at most `allowed`, or 1 if the batch is large enough to keep all threads busy.
inline std::int64_t target_blocks(std::int64_t threads, std::int64_t batch, double allowed) {
  const bool enough = batch >= 2 * threads || batch % threads == 0;
  return enough ? 1 : std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(static_cast<double>(threads), allowed)));
}

}  // namespace tenon::openblas
