// SPDX-License-Identifier: Apache-2.0
// integer_tiles.h - products of 8-bit integers with sums in i32, by register tiles: one operand of either type, the other i8 and packed in
// panels. A u8 x is packed as the i8 x - 128 = x ^ 0x80. Sums are stored, or requantised to bytes while they are in registers.
#pragma once

#include <cstdint>

#include <tenon/sdk/rounding.h>

#include "simd/instruction_set.h"

namespace tenon::openblas {

/// Columns of a panel, for every instruction set, so that packed weights do not depend on it.
inline constexpr std::int64_t integer_panel_width = 32;
/// Neighbours along k whose products an instruction adds. Panels are (padded k / 4, 32, 4): zeros where k or the columns end.
inline constexpr std::int64_t integer_group = 4;

/// Elements along k that a tile register of AMX takes: 64 or less, so that a few equal steps cover k.
inline std::int64_t integer_step(std::int64_t k) {
  const std::int64_t steps = sdk::ceil_div(k < 1 ? 1 : k, std::int64_t{64});
  return sdk::round_up(sdk::ceil_div(k < 1 ? 1 : k, steps), integer_group);
}
/// k with the padding of rows and panels: a multiple of integer_step(k).
inline std::int64_t padded_k(std::int64_t k) {
  return sdk::round_up(k, integer_step(k));
}

/// Bytes of one panel.
inline std::int64_t integer_panel_bytes(std::int64_t k) {
  return padded_k(k) * integer_panel_width;
}

/// How sums become bytes: y[i, j] = saturate(round(f32(sum + bias[j]) factor[j]) + zero_point), ties to even, and 0 for NaN, as
/// an infinite factor makes of 0. Lists are as long as whole panels.
struct IntegerRequantisation {
  const std::int32_t* bias = nullptr;
  const float* factor = nullptr;
  std::int32_t zero_point = 0;
  std::int32_t low = 0, high = 0;  ///< the bounds of y
  std::uint8_t* y = nullptr;       ///< bytes of i8 or u8; NULL: sums are not requantised
  std::int64_t y_step = 0;
};

/// sum[i, j] = sum over k of a[i, k] b[k, j] + row_factor[i] column_sums[j] + column_factor[j] row_sums[i], modulo 2^32
///
/// With row_factor = -a_zero_point, column_factor = -b_zero_point, column_sums those of b and row_sums those of a - a_zero_point, this is
/// the product of a - a_zero_point and b - b_zero_point. Where sums are requantised, row_factor is not read: their bias has its part.
struct IntegerTiles {
  std::int64_t rows = 0, k = 0, columns = 0;
  const std::uint8_t* a = nullptr;  ///< padded_k(k) readable elements in each row; those from k on meet zeros
  bool a_signed = false;            ///< a holds i8
  std::int64_t a_step = 0;          ///< between rows
  const std::int8_t* panels = nullptr;
  std::int32_t* y = nullptr;  ///< the sums, unless they are requantised
  std::int64_t y_step = 0;
  const std::int32_t* row_factor = nullptr;
  std::int64_t row_factor_step = 0;             ///< 1: one for each row; 0: one for all
  const std::int32_t* column_sums = nullptr;    ///< of whole panels
  const std::int32_t* column_factor = nullptr;  ///< of whole panels; NULL: 0, and row_sums is not read
  const std::int32_t* row_sums = nullptr;
  IntegerRequantisation requantisation;  ///< of the sums, instead of storing them in y
  /// Rows that are no rows of memory: element k of row i is at a + i a_step + a_offsets[k / part], k % part further on, and k a multiple of
  /// `part`, which is 64 unless integer_tiles_take_lines.
  /// With integer_tiles_take_offsets, row i of the bytes begins at y + y_offsets[i], and a negative one is not stored. With
  /// integer_tiles_take_lines, row i begins at a + i / line_rows * line_step + i % line_rows * a_step instead.
  const std::int64_t* a_offsets = nullptr;
  const std::int64_t* y_offsets = nullptr;
  std::int64_t part = 64;                     ///< a multiple of integer_group
  std::int64_t line_rows = 0, line_step = 0;  ///< 0: all rows are a_step apart
  const std::int8_t* next_panel = nullptr;    ///< one that is needed after these: fetched into the L2 cache meanwhile; NULL: none
};

/// Whether products of `rows` rows take a_offsets and y_offsets by the instructions of `set`.
bool integer_tiles_take_offsets(InstructionSet set, std::int64_t rows);
/// Whether products take a_offsets and lines by the instructions of `set`.
bool integer_tiles_take_lines(InstructionSet set);

/// Runs on the calling thread.
void multiply_integer_tiles(const IntegerTiles& tiles);

/// Requantises n sums of one row from column 0 of `by` on, with by.y as the row's first byte.
void requantise_row(const IntegerRequantisation& by, const std::int32_t* sums, std::int64_t n);

}  // namespace tenon::openblas
