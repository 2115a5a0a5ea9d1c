// SPDX-License-Identifier: Apache-2.0
// Tiles of plain loops.
#include <algorithm>

#include "quantize/integer_tile_kernels.h"

namespace tenon::openblas::portable {
namespace {

/// Adds to a sum what is beyond the product, and stores it as `t` says.
inline void finish(const IntegerTiles& t, std::uint32_t sum, std::int64_t row, std::int64_t column) {
  if (t.column_factor != nullptr) {
    sum += static_cast<std::uint32_t>(t.column_factor[column]) * static_cast<std::uint32_t>(t.row_sums[row]);
  }
  if (const IntegerRequantisation& by = t.requantisation; by.y != nullptr) {
    by.y[row * by.y_step + column] = requantised(by, static_cast<std::int32_t>(sum), column);
    return;
  }
  sum += static_cast<std::uint32_t>(t.row_factor[row * t.row_factor_step]) * static_cast<std::uint32_t>(t.column_sums[column]);
  t.y[row * t.y_step + column] = static_cast<std::int32_t>(sum);
}

template <class A>
void multiply(const IntegerTiles& t) {
  const std::int64_t groups = padded_k(t.k) / integer_group;
  for (std::int64_t column = 0; column < t.columns; column += integer_panel_width) {
    const std::int8_t* const panel = panel_at(t, column);
    const std::int64_t n = std::min(integer_panel_width, t.columns - column);
    for (std::int64_t row = 0; row < t.rows; ++row) {
      std::uint32_t sums[integer_panel_width] = {};
      for (std::int64_t g = 0; g < groups; ++g) {
        const A* const a = reinterpret_cast<const A*>(t.a) + row * t.a_step + g * integer_group;
        const std::int8_t* const b = panel + g * integer_group * integer_panel_width;
        for (std::int64_t j = 0; j < integer_panel_width; ++j) {
          sums[j] += static_cast<std::uint32_t>(a[0] * b[4 * j] + a[1] * b[4 * j + 1] + a[2] * b[4 * j + 2] + a[3] * b[4 * j + 3]);
        }
      }
      for (std::int64_t j = 0; j < n; ++j) finish(t, sums[j], row, column + j);
    }
  }
}

}  // namespace

void multiply_integer_tiles(const IntegerTiles& tiles) {
  tiles.a_signed ? multiply<std::int8_t>(tiles) : multiply<std::uint8_t>(tiles);
}

void requantise_row(const IntegerRequantisation& by, const std::int32_t* sums, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) by.y[j] = requantised(by, sums[j], j);
}

}  // namespace tenon::openblas::portable
