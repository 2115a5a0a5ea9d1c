// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_tiles.h"

#include <algorithm>
#include <cstring>

#include "simd/instruction_set.h"
#include "simd/x86.h"

// The tiles are written with intrinsics: Highway's AVX-512 target has no vpdpbusd, and its i16 products leave the order of lanes open.

namespace tenon::openblas {
namespace {

/// The elements k, k + 1, k + 2, k + 3 of a row as one word.
inline std::int32_t group_at(const std::uint8_t* row) {
  std::int32_t word;
  std::memcpy(&word, row, sizeof word);
  return word;
}

/// The part of y beyond the product: y = sum + row_factor column_sum + column_factor row_sum, modulo 2^32.
inline std::int32_t corrected(const IntegerTiles& t, std::uint32_t sum, std::int64_t row, std::int64_t column) {
  sum += static_cast<std::uint32_t>(t.row_factor[row * t.row_factor_step]) * static_cast<std::uint32_t>(t.column_sums[column]);
  if (t.column_factor != nullptr) {
    sum += static_cast<std::uint32_t>(t.column_factor[column]) * static_cast<std::uint32_t>(t.row_sums[row]);
  }
  return static_cast<std::int32_t>(sum);
}

/// In plain loops.
void multiply_portable(const IntegerTiles& t) {
  const std::int64_t groups = sdk::ceil_div(t.k, integer_group);
  for (std::int64_t column = 0; column < t.columns; column += integer_panel_width) {
    const std::int8_t* const panel = t.panels + column * groups * integer_group;
    const std::int64_t n = std::min(integer_panel_width, t.columns - column);
    for (std::int64_t row = 0; row < t.rows; ++row) {
      std::int32_t sums[integer_panel_width] = {};
      for (std::int64_t g = 0; g < groups; ++g) {
        const std::uint8_t* const a = t.a + row * t.a_step + g * integer_group;
        const std::int8_t* const b = panel + g * integer_group * integer_panel_width;
        for (std::int64_t j = 0; j < integer_panel_width; ++j) {
          const int four = a[0] * b[4 * j] + a[1] * b[4 * j + 1] + a[2] * b[4 * j + 2] + a[3] * b[4 * j + 3];
          sums[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[j]) + static_cast<std::uint32_t>(four));
        }
      }
      for (std::int64_t j = 0; j < n; ++j) {
        t.y[row * t.y_step + column + j] = corrected(t, static_cast<std::uint32_t>(sums[j]), row, column + j);
      }
    }
  }
}

#if TENON_X86

TENON_BEGIN_TARGET("avx2")

// A pair of products of u8 and i8 exceeds the i16 of vpmaddubsw, so both are widened to i16 for vpmaddwd.
namespace avx2 {

/// `rows` rows and 16 columns, from `row` and `column` on.
template <int rows>
inline void tile(const IntegerTiles& t, const std::int8_t* b, std::int64_t row, std::int64_t column) {
  const std::int64_t groups = sdk::ceil_div(t.k, integer_group);
  __m256i sums[rows][4];  // 4 columns each: the sums of even and odd pairs of k
  for (auto& line : sums) {
    for (__m256i& sum : line) sum = _mm256_setzero_si256();
  }
  const std::uint8_t* const a = t.a + row * t.a_step;
  for (std::int64_t g = 0; g < groups; ++g, b += integer_group * integer_panel_width) {
    __m256i four[rows];
    for (int r = 0; r < rows; ++r) four[r] = _mm256_cvtepu8_epi16(_mm_set1_epi32(group_at(a + r * t.a_step + g * integer_group)));
    for (int v = 0; v < 4; ++v) {
      const __m256i weights = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 16 * v)));
      for (int r = 0; r < rows; ++r) sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(four[r], weights));
    }
  }
  const std::int64_t n = t.columns - column;
  for (int r = 0; r < rows; ++r) {
    const __m256i factor = _mm256_set1_epi32(t.row_factor[(row + r) * t.row_factor_step]);
    for (int half = 0; half < 2 && 8 * half < n; ++half) {
      const std::int64_t j = column + 8 * half;
      const auto load = [j](const std::int32_t* list) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(list + j)); };
      __m256i sum = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[r][2 * half], sums[r][2 * half + 1]), 0b11011000);
      sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(factor, load(t.column_sums)));
      if (t.column_factor != nullptr) {
        sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(_mm256_set1_epi32(t.row_sums[row + r]), load(t.column_factor)));
      }
      std::int32_t* const y = t.y + (row + r) * t.y_step + j;
      if (n - 8 * half >= 8) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), sum);
      } else {
        const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_maskstore_epi32(y, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n - 8 * half)), index), sum);
      }
    }
  }
}

void multiply(const IntegerTiles& t) {
  for (std::int64_t column = 0; column < t.columns; column += 16) {
    const std::int64_t panel = column / integer_panel_width * integer_panel_width;
    const std::int8_t* const b = t.panels + panel * sdk::round_up(t.k, integer_group) + (column - panel) * integer_group;
    std::int64_t row = 0;
    for (; row + 2 <= t.rows; row += 2) tile<2>(t, b, row, column);
    if (row < t.rows) tile<1>(t, b, row, column);
  }
}

}  // namespace avx2

TENON_END_TARGET

TENON_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")

namespace vnni {

/// Adds what the zero points contribute to 16 sums and stores those that are in y.
inline void store(const IntegerTiles& t, __m512i sum, std::int64_t row, std::int64_t column) {
  const std::int64_t n = std::min<std::int64_t>(16, t.columns - column);
  const __m512i factor = _mm512_set1_epi32(t.row_factor[row * t.row_factor_step]);
  sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(factor, _mm512_loadu_si512(t.column_sums + column)));
  if (t.column_factor != nullptr) {
    const __m512i by = _mm512_set1_epi32(t.row_sums[row]);
    sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(by, _mm512_loadu_si512(t.column_factor + column)));
  }
  _mm512_mask_storeu_epi32(t.y + row * t.y_step + column, static_cast<__mmask16>((1u << n) - 1), sum);
}

/// `rows` rows and 16 `vectors` columns, from `row` and `column` on.
template <int rows, int vectors>
inline void tile(const IntegerTiles& t, const std::int8_t* b, std::int64_t row, std::int64_t column) {
  const std::int64_t groups = sdk::ceil_div(t.k, integer_group), step = t.a_step;
  __m512i sums[rows][vectors];
  for (auto& line : sums) {
    for (__m512i& sum : line) sum = _mm512_setzero_si512();
  }
  const std::uint8_t* a = t.a + row * step;
  for (std::int64_t g = 0; g < groups; ++g, a += integer_group, b += integer_group * integer_panel_width) {
    __m512i weights[vectors];
    for (int v = 0; v < vectors; ++v) weights[v] = _mm512_loadu_si512(b + 64 * v);
    for (int r = 0; r < rows; ++r) {
      const __m512i four = _mm512_set1_epi32(group_at(a + r * step));
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], four, weights[v]);
    }
  }
  for (int v = 0; v < vectors && column + 16 * v < t.columns; ++v) {
    for (int r = 0; r < rows; ++r) store(t, sums[r][v], row + r, column + 16 * v);
  }
}

/// The rows from `row` on.
template <int vectors>
void panel_rows(const IntegerTiles& t, const std::int8_t* b, std::int64_t row, std::int64_t column) {
  // The tile has 16 sums in registers, enough to hide the latency of an addition; 8 row addresses fit the registers too.
  for (; row + 8 <= t.rows; row += 8) tile<8, vectors>(t, b, row, column);
  switch (t.rows - row) {
    case 1:
      return tile<1, vectors>(t, b, row, column);
    case 2:
      return tile<2, vectors>(t, b, row, column);
    case 3:
      return tile<3, vectors>(t, b, row, column);
    case 4:
      return tile<4, vectors>(t, b, row, column);
    case 5:
      return tile<5, vectors>(t, b, row, column);
    case 6:
      return tile<6, vectors>(t, b, row, column);
    case 7:
      return tile<7, vectors>(t, b, row, column);
    default:
      return;
  }
}

/// One panel's columns.
inline void panel(const IntegerTiles& t, const std::int8_t* b, std::int64_t row, std::int64_t column) {
  if (t.columns - column > 16) return panel_rows<2>(t, b, row, column);
  panel_rows<1>(t, b, row, column);
}

void multiply(const IntegerTiles& t) {
  for (std::int64_t column = 0; column < t.columns; column += integer_panel_width) {
    const std::int8_t* const b = t.panels + column * sdk::round_up(t.k, integer_group);
    panel(t, b, 0, column);
  }
}

}  // namespace vnni

TENON_END_TARGET

TENON_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,amx-tile,amx-int8")

// Intel AMX: tile registers of 16 rows of 64 bytes. tdpbusd multiplies 16 rows of 64 u8 with 16 groups of 16 columns of 4 i8, which are
// the lines of a panel, and adds the products to 16 x 16 sums.
namespace amx {

constexpr std::int64_t tile_rows = 16, tile_k = 64, tile_groups = tile_k / integer_group;

/// Sums of 16 or 32 rows and a panel's columns over whole tiles of k; then the rest of k.
template <bool two>
inline void block(const IntegerTiles& t, const std::int8_t* b, std::int64_t row, std::int64_t column) {
  constexpr std::int64_t line = integer_group * integer_panel_width;  // bytes
  const std::uint8_t* a = t.a + row * t.a_step;
  const std::int8_t* lines = b;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  std::int64_t k = 0;
  for (; k + tile_k <= t.k; k += tile_k, lines += tile_groups * line) {
    _tile_loadd(6, lines, line);
    _tile_loadd(7, lines + 64, line);
    _tile_loadd(4, a + k, t.a_step);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    if constexpr (two) {
      _tile_loadd(5, a + tile_rows * t.a_step + k, t.a_step);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    }
  }
  alignas(64) std::int32_t sums[2 * tile_rows][integer_panel_width];
  _tile_stored(0, sums[0], line);
  _tile_stored(1, sums[0] + 16, line);
  if constexpr (two) {
    _tile_stored(2, sums[tile_rows], line);
    _tile_stored(3, sums[tile_rows] + 16, line);
  }
  for (std::int64_t r = 0; r < (two ? 2 : 1) * tile_rows; ++r) {
    const std::uint8_t* const rest = a + r * t.a_step;
    for (std::int64_t v = 0; v < 2 && column + 16 * v < t.columns; ++v) {
      __m512i sum = _mm512_load_si512(sums[r] + 16 * v);
      for (std::int64_t i = k; i < t.k; i += integer_group) {
        const __m512i weights = _mm512_loadu_si512(b + i / integer_group * line + 64 * v);
        sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi32(group_at(rest + i)), weights);
      }
      vnni::store(t, sum, row + r, column + 16 * v);
    }
  }
}

void multiply(const IntegerTiles& t) {
  _tile_loadconfig(&amx_full_tiles);
  for (std::int64_t column = 0; column < t.columns; column += integer_panel_width) {
    const std::int8_t* const b = t.panels + column * sdk::round_up(t.k, integer_group);
    std::int64_t row = 0;
    for (; row + 2 * tile_rows <= t.rows; row += 2 * tile_rows) block<true>(t, b, row, column);
    if (row + tile_rows <= t.rows) {
      block<false>(t, b, row, column);
      row += tile_rows;
    }
    vnni::panel(t, b, row, column);
  }
  _tile_release();
}

}  // namespace amx

TENON_END_TARGET

#endif  // TENON_X86

}  // namespace

void multiply_integer_tiles(const IntegerTiles& tiles) {
#if TENON_X86
  if (has_avx512_vnni()) {
    const bool fills_tiles = tiles.rows >= amx::tile_rows && tiles.k >= amx::tile_k;
    return fills_tiles && has_amx_int8() ? amx::multiply(tiles) : vnni::multiply(tiles);
  }
  if (instruction_set() >= InstructionSet::avx2) return avx2::multiply(tiles);
#endif
  multiply_portable(tiles);
}

}  // namespace tenon::openblas
