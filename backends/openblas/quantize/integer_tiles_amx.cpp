// SPDX-License-Identifier: Apache-2.0
// Tiles of Intel AMX: tile registers of up to 16 rows of 64 bytes. tdpbusd multiplies 16 rows of `step` u8 with step / 4 groups of 16
// columns of 4 i8, which are the lines of a panel, and adds the products to 16 x 16 sums; tdpbssd does so for rows of i8.
#include "quantize/integer_requantiser.h"
#include "quantize/integer_tile_kernels.h"

#if TENON_X86

TENON_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,amx-tile,amx-int8")

namespace tenon::openblas::amx {
namespace {

// Panels of products of at most this number of rows are fetched ahead.
constexpr std::int64_t few_rows = 256;

/// Requantises sums of `rows` rows, an even number, and a panel's columns.
template <bool small_factors>
inline void requantise_rows(const IntegerTiles& t, const std::int32_t (*sums)[integer_panel_width], std::int64_t rows, std::int64_t row,
                            std::int64_t column) {
  const vnni::PanelRequantiser<small_factors> requantised(t, column);
  for (std::int64_t r = 0; r < rows; r += 2) {
    requantised.put(row + r, _mm512_load_si512(sums[r]), _mm512_load_si512(sums[r] + 16), _mm512_load_si512(sums[r + 1]),
                    _mm512_load_si512(sums[r + 1] + 16));
  }
}

/// The same of the first 16 columns of a panel; `rows` is a multiple of 4.
inline void requantise_narrow_rows(const IntegerTiles& t, const std::int32_t (*sums)[integer_panel_width], std::int64_t rows,
                                   std::int64_t row, std::int64_t column) {
  const IntegerRequantisation by = t.requantisation;
  const vnni::Requantiser requantised(by);
  const __m512 factor = _mm512_loadu_ps(by.factor + column);
  const bool corrects = t.column_factor != nullptr;
  const __m512i column_factor = corrects ? _mm512_loadu_si512(t.column_factor + column) : _mm512_setzero_si512();
  const std::int32_t* const row_sums = corrects ? t.row_sums + row : nullptr;
  const __mmask16 mask = vnni::first(t.columns - column);
  std::uint8_t* y = by.y + row * by.y_step + column;
  for (std::int64_t r = 0; r < rows; r += 4) {
    __m512i scaled[4];
    for (int i = 0; i < 4; ++i) {
      __m512i sum = _mm512_load_si512(sums[r + i]);
      if (corrects) sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(row_sums[r + i]), column_factor));
      scaled[i] = requantised.scaled(sum, factor);
    }
    const __m512i bytes = requantised(scaled[0], scaled[1], scaled[2], scaled[3]);
    _mm_mask_storeu_epi8(y, mask, _mm512_castsi512_si128(bytes));
    _mm_mask_storeu_epi8(y + by.y_step, mask, _mm512_extracti32x4_epi32(bytes, 1));
    _mm_mask_storeu_epi8(y + 2 * by.y_step, mask, _mm512_extracti32x4_epi32(bytes, 2));
    _mm_mask_storeu_epi8(y + 3 * by.y_step, mask, _mm512_extracti32x4_epi32(bytes, 3));
    y += 4 * by.y_step;
  }
}

/// Sums of 16 or 32 rows, and of all columns of a panel if `wide`, or else of the first 16.
/// `next` is a panel to fetch into the L2 cache meanwhile; NULL: none.
template <bool a_signed, bool two, bool wide>
inline void block(const IntegerTiles& t, const std::int8_t* b, std::int64_t row, std::int64_t column, const std::int8_t* next = nullptr) {
  constexpr std::int64_t line = integer_group * integer_panel_width;  // bytes
  const std::uint8_t* a = t.a + row * t.a_step;
  const std::int64_t step = integer_step(t.k), end = padded_k(t.k);
  if (t.requantisation.y != nullptr) {
    // All rows begin with the bias.
    const std::int32_t* const bias = t.requantisation.bias + column;
    load_tile<0>(bias, 0);
    if constexpr (wide) load_tile<1>(bias + 16, 0);
    if constexpr (two) load_tile<2>(bias, 0);
    if constexpr (two && wide) load_tile<3>(bias + 16, 0);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t k = 0; k < end; k += step) {
    const std::int8_t* const lines = b + k * integer_panel_width;
    const std::uint8_t* const from = a + (t.a_offsets == nullptr ? k : t.a_offsets[k / 64]);
    if (next != nullptr) {
      const std::int8_t* const ahead = next + k * integer_panel_width;
      for (std::int64_t i = 0; i < step * integer_panel_width; i += 64) _mm_prefetch(ahead + i, _MM_HINT_T1);
    }
    load_tile<6>(lines, line);
    if constexpr (wide) load_tile<7>(lines + 64, line);
    load_tile<4>(from, t.a_step);
    if constexpr (a_signed) {
      _tile_dpbssd(0, 4, 6);
      if constexpr (wide) _tile_dpbssd(1, 4, 7);
    } else {
      _tile_dpbusd(0, 4, 6);
      if constexpr (wide) _tile_dpbusd(1, 4, 7);
    }
    if constexpr (two) {
      load_tile<5>(from + tile_rows * t.a_step, t.a_step);
      if constexpr (a_signed) {
        _tile_dpbssd(2, 5, 6);
        if constexpr (wide) _tile_dpbssd(3, 5, 7);
      } else {
        _tile_dpbusd(2, 5, 6);
        if constexpr (wide) _tile_dpbusd(3, 5, 7);
      }
    }
  }
  alignas(64) std::int32_t sums[2 * tile_rows][integer_panel_width];
  store_tile<0>(sums[0], line);
  if constexpr (wide) store_tile<1>(sums[0] + 16, line);
  if constexpr (two) {
    store_tile<2>(sums[tile_rows], line);
    if constexpr (wide) store_tile<3>(sums[tile_rows] + 16, line);
  }
  constexpr std::int64_t rows = (two ? 2 : 1) * tile_rows;
  if (t.requantisation.y != nullptr) {
    if (!wide) return requantise_narrow_rows(t, sums, rows, row, column);
    const bool small_factors = vnni::Requantiser::are_small(t.requantisation.factor + column, integer_panel_width);
    return small_factors ? requantise_rows<true>(t, sums, rows, row, column) : requantise_rows<false>(t, sums, rows, row, column);
  }
  for (std::int64_t v = 0; v < (wide ? 2 : 1); ++v) {
    for (std::int64_t r = 0; r < rows; ++r) {
      vnni::store(t, _mm512_load_si512(sums[r] + 16 * v), row + r, column + 16 * v);
    }
  }
}

/// All rows, 16 or more, and the columns of one panel.
template <bool a_signed, bool wide>
void panel(const IntegerTiles& t, std::int64_t column) {
  const std::int8_t* const b = panel_at(t, column);
  // Panels of weights that few rows read arrive from memory while the one before is used.
  const std::int8_t* next = t.rows <= few_rows ? next_panel(t, column, b) : nullptr;
  std::int64_t row = 0;
  for (; row + 2 * tile_rows <= t.rows; row += 2 * tile_rows) {
    block<a_signed, true, wide>(t, b, row, column, next);
    next = nullptr;
  }
  // The last rows are computed again with those that are left: a whole tile takes less time than a few rows without tiles.
  const std::int64_t left = t.rows - row;
  if (left > tile_rows && t.rows >= 2 * tile_rows) {
    block<a_signed, true, wide>(t, b, t.rows - 2 * tile_rows, column);
  } else if (left > 0) {
    if (left > tile_rows) block<a_signed, false, wide>(t, b, row, column);
    block<a_signed, false, wide>(t, b, t.rows - tile_rows, column);
  }
}

template <bool a_signed>
void multiply(const IntegerTiles& t) {
  AmxTileConfig config;
  const std::int64_t step = integer_step(t.k);
  for (const int tile : {4, 5}) config.bytes_per_row[tile] = static_cast<unsigned short>(step);
  for (const int tile : {6, 7}) config.rows[tile] = static_cast<unsigned char>(step / integer_group);
  load_tile_config(config);
  for (std::int64_t column = 0; column < t.columns; column += integer_panel_width) {
    // The narrow tiles store whole rows.
    const bool wide = t.columns - column > 16 || t.y_offsets != nullptr;
    wide ? panel<a_signed, true>(t, column) : panel<a_signed, false>(t, column);
  }
  _tile_release();
}

}  // namespace

void multiply_integer_tiles(const IntegerTiles& tiles) {
  tiles.a_signed ? multiply<true>(tiles) : multiply<false>(tiles);
}

}  // namespace tenon::openblas::amx

TENON_END_TARGET

#endif
