// SPDX-License-Identifier: Apache-2.0
// integer_tile_kernels.h - the functions of integer_tiles.h for each instruction set, and what they share. The tiles are written with
// intrinsics: Highway's AVX-512 target has no vpdpbusd, and its i16 products leave the order of lanes open.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "quantize/integer_tiles.h"

namespace tenon::openblas {

/// The elements k, k + 1, k + 2, k + 3 of a row as one word.
inline std::int32_t group_at(const std::uint8_t* row) {
  std::int32_t word;
  std::memcpy(&word, row, sizeof word);
  return word;
}

/// The lines of panel `column` / integer_panel_width, from `column` on.
inline const std::int8_t* panel_at(const IntegerTiles& t, std::int64_t column) {
  const std::int64_t panel = column / integer_panel_width * integer_panel_width;
  return t.panels + panel * padded_k(t.k) + (column - panel) * integer_group;
}

/// The panel after `panel`, that of `column`; NULL: none.
inline const std::int8_t* next_panel(const IntegerTiles& t, std::int64_t column, const std::int8_t* panel) {
  return column + integer_panel_width < t.columns ? panel + integer_panel_bytes(t.k) : t.next_panel;
}

/// The byte of a sum of this column.
inline std::uint8_t requantised(const IntegerRequantisation& by, std::int32_t sum, std::int64_t column) {
  const auto biased = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(by.bias[column]));
  const float q = std::nearbyint(static_cast<float>(biased) * by.factor[column]) + static_cast<float>(by.zero_point);
  if (std::isnan(q)) return 0;
  const auto low = static_cast<float>(by.low), high = static_cast<float>(by.high);
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(q < low ? low : q > high ? high : q));
}

// The callers make sure that the processor has the instructions (x86.h).

namespace portable {
void multiply_integer_tiles(const IntegerTiles& tiles);
void requantise_row(const IntegerRequantisation& by, const std::int32_t* sums, std::int64_t n);
}  // namespace portable

namespace avx2 {
void multiply_integer_tiles(const IntegerTiles& tiles);
void requantise_row(const IntegerRequantisation& by, const std::int32_t* sums, std::int64_t n);
}  // namespace avx2

namespace vnni {
void multiply_integer_tiles(const IntegerTiles& tiles);
void requantise_row(const IntegerRequantisation& by, const std::int32_t* sums, std::int64_t n);
}  // namespace vnni

namespace amx {
/// Products of fewer rows are left to vnni.
inline constexpr std::int64_t tile_rows = 16;
void multiply_integer_tiles(const IntegerTiles& tiles);
}  // namespace amx

}  // namespace tenon::openblas
