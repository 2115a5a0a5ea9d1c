// SPDX-License-Identifier: Apache-2.0
// integer_tiles.h - products of 8-bit integers with sums in i32, by register tiles: one operand u8, the other i8 and packed in panels.
// Operands of other types are converted exactly: x ^ 0x80 is x + 128 as u8 of an i8 x, and x - 128 as i8 of a u8 x.
#pragma once

#include <cstdint>

#include <tenon/sdk/rounding.h>

namespace tenon::openblas {

/// Columns of a panel, for every instruction set, so that packed weights do not depend on it.
inline constexpr std::int64_t integer_panel_width = 32;
/// Neighbours along k whose products an instruction adds. Panels are (k / 4, 32, 4): padded with zeros where k or the columns end.
inline constexpr std::int64_t integer_group = 4;

/// Bytes of one panel.
inline std::int64_t integer_panel_bytes(std::int64_t k) {
  return sdk::round_up(k, integer_group) * integer_panel_width;
}

/// y[i, j] = sum over k of a[i, k] b[k, j] + row_factor[i] column_sums[j] + column_factor[j] row_sums[i], modulo 2^32
///
/// With row_factor = -a_zero_point, column_factor = -b_zero_point, column_sums those of b and row_sums those of a - a_zero_point, this is
/// the product of a - a_zero_point and b - b_zero_point.
struct IntegerTiles {
  std::int64_t rows = 0, k = 0, columns = 0;
  const std::uint8_t* a = nullptr;  ///< round_up(k, 4) readable elements in each row; those from k on meet zeros
  std::int64_t a_step = 0;          ///< between rows
  const std::int8_t* panels = nullptr;
  std::int32_t* y = nullptr;
  std::int64_t y_step = 0;
  const std::int32_t* row_factor = nullptr;
  std::int64_t row_factor_step = 0;             ///< 1: one for each row; 0: one for all
  const std::int32_t* column_sums = nullptr;    ///< of whole panels
  const std::int32_t* column_factor = nullptr;  ///< of whole panels; NULL: 0, and row_sums is not read
  const std::int32_t* row_sums = nullptr;
};

/// Runs on the calling thread.
void multiply_integer_tiles(const IntegerTiles& tiles);

}  // namespace tenon::openblas
