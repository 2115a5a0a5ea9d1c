// SPDX-License-Identifier: Apache-2.0
// Tiles of AVX-512 VNNI.
#include <algorithm>
#include <optional>
#include <utility>

#include "gemm/panel_prefetch.h"
#include "quantize/integer_requantiser.h"
#include "quantize/integer_tile_kernels.h"
#include "simd/unroll.h"

#if TENON_X86

TENON_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")

namespace tenon::openblas::vnni {
namespace {

/// Requantises the sums of a tile.
template <bool small_factors, int rows>
[[gnu::always_inline]] inline void requantise_tile(const IntegerTiles& t, const __m512i (&sums)[rows][2], std::int64_t row,
                                                   std::int64_t column) {
  const PanelRequantiser<small_factors> requantised(t, column);
  TENON_UNROLL
  for (int r = 0; r + 1 < rows; r += 2) requantised.put(row + r, sums[r][0], sums[r][1], sums[r + 1][0], sums[r + 1][1]);
  constexpr int last = rows - 1;
  if constexpr (rows % 2 != 0) requantised.template put<true>(row + last, sums[last][0], sums[last][1], sums[last][0], sums[last][1]);
}

/// Whether the sums of these columns are stored after adding the same to all rows: what one zero point of a contributes.
template <int vectors>
[[gnu::always_inline]] inline bool are_plain_sums(const IntegerTiles& t, std::int64_t column) {
  return t.requantisation.y == nullptr && t.row_factor_step == 0 && t.column_factor == nullptr && t.columns - column >= 16 * vectors;
}

/// `rows` rows, the first of which is at `a`, and 16 `vectors` columns, from `row` and `column` on. The sums begin with the bias, or with
/// what is added to all rows. The instruction takes u8: an i8 a is read as a + 128, and -128 times the sums of the columns are added.
/// `by_parts`: as a_offsets says. `plain`: stores the rows of requantised sums without branches; or NULL.
template <bool a_signed, bool by_parts, int rows, int vectors>
void tile(const IntegerTiles& t, const std::uint8_t* a, const std::int8_t* b, std::int64_t row, std::int64_t column,
          PanelPrefetch::Cursor next, const PanelRequantiser<true>* plain) {
  const std::int64_t step = t.a_step;
  const bool plain_sums = are_plain_sums<vectors>(t, column);
  __m512i sums[rows][vectors];
  TENON_UNROLL
  for (int v = 0; v < vectors; ++v) {
    __m512i begin = _mm512_setzero_si512();
    if (t.requantisation.y != nullptr) begin = _mm512_loadu_si512(t.requantisation.bias + column + 16 * v);
    if (plain_sums) begin = _mm512_mullo_epi32(_mm512_set1_epi32(*t.row_factor), _mm512_loadu_si512(t.column_sums + column + 16 * v));
    if constexpr (a_signed) begin = _mm512_sub_epi32(begin, _mm512_slli_epi32(_mm512_loadu_si512(t.column_sums + column + 16 * v), 7));
    TENON_UNROLL
    for (int r = 0; r < rows; ++r) sums[r][v] = begin;
  }
  // A pointer for each three rows, since one for each row does not fit the registers.
  constexpr int pointers = (rows + 2) / 3;
  const std::uint8_t* from[pointers];
  const std::int64_t parts = by_parts ? t.k / t.part : 1, groups = (by_parts ? t.part : padded_k(t.k)) / integer_group;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::uint8_t* const begin = by_parts ? a + t.a_offsets[part] : a;
    TENON_UNROLL
    for (int i = 0; i < pointers; ++i) from[i] = begin + 3 * i * step;
    for (std::int64_t g = 0; g < groups; ++g, b += integer_group * integer_panel_width, next.from += next.step) {
      TENON_UNROLL
      for (int i = 0; i < pointers; ++i) asm("" : "+r"(from[i]));  // or the compiler makes a pointer for each row of them
      _mm_prefetch(next.from, _MM_HINT_T1);
      __m512i weights[vectors];
      TENON_UNROLL
      for (int v = 0; v < vectors; ++v) weights[v] = _mm512_loadu_si512(b + 64 * v);
      TENON_UNROLL
      for (int r = 0; r < rows; ++r) {
        __m512i four = _mm512_set1_epi32(group_at(from[r / 3] + r % 3 * step));
        if constexpr (a_signed) four = _mm512_xor_si512(four, _mm512_set1_epi8(-128));
        TENON_UNROLL
        for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], four, weights[v]);
      }
      TENON_UNROLL
      for (int i = 0; i < pointers; ++i) from[i] += integer_group;
    }
  }
  if (plain_sums) {
    std::int32_t* const y = t.y + row * t.y_step + column;
    const std::int64_t y_step = t.y_step;
    TENON_UNROLL
    for (int r = 0; r < rows; ++r) {
      TENON_UNROLL
      for (int v = 0; v < vectors; ++v) _mm512_storeu_si512(y + r * y_step + 16 * v, sums[r][v]);
    }
    return;
  }
  if constexpr (vectors == 2) {
    if (plain != nullptr) return plain->put_tile(row, sums);
    if (t.requantisation.y != nullptr) {
      const bool small_factors = Requantiser::are_small(t.requantisation.factor + column, integer_panel_width);
      return small_factors ? requantise_tile<true>(t, sums, row, column) : requantise_tile<false>(t, sums, row, column);
    }
  }
  TENON_UNROLL
  for (int v = 0; v < vectors; ++v) {
    if (column + 16 * v >= t.columns) break;
    TENON_UNROLL
    for (int r = 0; r < rows; ++r) store(t, sums[r][v], row + r, column + 16 * v);
  }
}

constexpr std::int64_t tile_rows = 14;
using TileFunction = void (*)(const IntegerTiles&, const std::uint8_t*, const std::int8_t*, std::int64_t, std::int64_t,
                              PanelPrefetch::Cursor, const PanelRequantiser<true>*);

template <bool a_signed, bool by_parts, int vectors, int... rows>
TileFunction tile_of(std::int64_t height, std::integer_sequence<int, rows...>) {
  static constexpr TileFunction tiles[] = {&tile<a_signed, by_parts, rows + 1, vectors>...};
  return tiles[height - 1];
}

/// For panels of which all columns are stored, with small factors and weights whose zero points are 0.
std::optional<PanelRequantiser<true>> plain_requantiser(const IntegerTiles& t, std::int64_t column) {
  if (t.requantisation.y == nullptr) return std::nullopt;
  const float* const factors = t.requantisation.factor + column;
  if (!Requantiser::are_small(_mm512_loadu_ps(factors)) || !Requantiser::are_small(_mm512_loadu_ps(factors + 16))) return std::nullopt;
  const PanelRequantiser<true> requantiser(t, column);
  return requantiser.is_plain() ? std::optional(requantiser) : std::nullopt;
}

template <bool a_signed, bool by_parts>
void multiply_rows(const IntegerTiles& t) {
  constexpr auto heights = std::make_integer_sequence<int, tile_rows>();
  if (t.rows == 0) return;
  // Each line is divided into tiles of about the same height.
  const std::int64_t line = t.line_rows == 0 ? t.rows : t.line_rows, lines = t.rows / line;
  const std::int64_t count = sdk::ceil_div(line, tile_rows), height = line / count, higher = line % count;
  const std::int64_t panel_bytes = integer_panel_bytes(t.k);
  for (std::int64_t column = 0; column < t.columns; column += integer_panel_width) {
    const std::int8_t* const b = panel_at(t, column);
    const bool wide = t.columns - column > 16;
    const std::optional<PanelRequantiser<true>> requantiser = plain_requantiser(t, column);
    const PanelRequantiser<true>* const plain = requantiser ? &*requantiser : nullptr;
    PanelPrefetch next(next_panel(t, column, b), panel_bytes, lines * count, padded_k(t.k) / integer_group);
    const TileFunction low = wide ? tile_of<a_signed, by_parts, 2>(height, heights) : tile_of<a_signed, by_parts, 1>(height, heights);
    const TileFunction high = higher == 0 ? low
                              : wide      ? tile_of<a_signed, by_parts, 2>(height + 1, heights)
                                          : tile_of<a_signed, by_parts, 1>(height + 1, heights);
    std::int64_t row = 0;
    for (std::int64_t l = 0; l < lines; ++l) {
      const std::uint8_t* a = t.a + l * t.line_step;
      for (std::int64_t i = 0; i < count; ++i) {
        const bool is_high = i < higher;
        (is_high ? high : low)(t, a, b, row, column, next.take(b), plain);
        row += height + (is_high ? 1 : 0);
        a += (height + (is_high ? 1 : 0)) * t.a_step;
      }
    }
  }
}

template <bool a_signed>
void multiply(const IntegerTiles& t) {
  t.a_offsets == nullptr ? multiply_rows<a_signed, false>(t) : multiply_rows<a_signed, true>(t);
}

}  // namespace

void multiply_integer_tiles(const IntegerTiles& tiles) {
  tiles.a_signed ? multiply<true>(tiles) : multiply<false>(tiles);
}

void requantise_row(const IntegerRequantisation& by, const std::int32_t* sums, std::int64_t n) {
  const Requantiser requantised(by);
  for (std::int64_t j = 0; j < n; j += 16) {
    const __mmask16 mask = first(n - j);
    const __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(mask, sums + j), _mm512_maskz_loadu_epi32(mask, by.bias + j));
    const __m512i scaled = requantised.scaled(sum, _mm512_maskz_loadu_ps(mask, by.factor + j));
    _mm_mask_storeu_epi8(by.y + j, mask, requantised(scaled));
  }
}

}  // namespace tenon::openblas::vnni

TENON_END_TARGET

#endif
