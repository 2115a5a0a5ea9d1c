// SPDX-License-Identifier: Apache-2.0
// Tiles of AVX2. A pair of products of u8 and i8 exceeds the i16 of vpmaddubsw, so both are widened to i16 for vpmaddwd.
#include <algorithm>
#include <cstring>

#include "quantize/integer_tile_kernels.h"
#include "simd/x86.h"

#if TENON_X86

TENON_BEGIN_TARGET("avx2,fma")

namespace tenon::openblas::avx2 {
namespace {

inline __m256i load(const std::int32_t* list) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(list));
}

/// 8 sums as bytes of y, in its low 8 bytes. The bounds are the first operands of minimum and maximum, whose result is the second one if
/// that is NaN, and the integer of NaN, 2^31, has 0 in its low byte.
inline __m128i requantised(const IntegerRequantisation& by, __m256i sum, std::int64_t column) {
  sum = _mm256_add_epi32(sum, load(by.bias + column));
  const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(by.factor + column));
  const __m256 rounded = _mm256_round_ps(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 q = _mm256_add_ps(rounded, _mm256_set1_ps(static_cast<float>(by.zero_point)));
  q = _mm256_max_ps(_mm256_set1_ps(static_cast<float>(by.low)), q);
  q = _mm256_min_ps(_mm256_set1_ps(static_cast<float>(by.high)), q);
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_cvtps_epi32(q), _mm256_set1_epi32(0x0c080400));
  return _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
}

inline void store_bytes(std::uint8_t* to, __m128i bytes, std::int64_t n) {
  const auto word = static_cast<std::uint64_t>(_mm_cvtsi128_si64(bytes));
  std::memcpy(to, &word, static_cast<std::size_t>(std::min<std::int64_t>(n, 8)));
}

/// `rows` rows and 16 columns, from `row` and `column` on.
template <bool a_signed, int rows>
inline void tile(const IntegerTiles& t, const std::int8_t* b, std::int64_t row, std::int64_t column) {
  const std::int64_t groups = padded_k(t.k) / integer_group;
  __m256i sums[rows][4];  // 4 columns each: the sums of even and odd pairs of k
  for (auto& line : sums) {
    for (__m256i& sum : line) sum = _mm256_setzero_si256();
  }
  const std::uint8_t* const a = t.a + row * t.a_step;
  for (std::int64_t g = 0; g < groups; ++g, b += integer_group * integer_panel_width) {
    __m256i four[rows];
    for (int r = 0; r < rows; ++r) {
      const __m128i word = _mm_set1_epi32(group_at(a + r * t.a_step + g * integer_group));
      four[r] = a_signed ? _mm256_cvtepi8_epi16(word) : _mm256_cvtepu8_epi16(word);
    }
    for (int v = 0; v < 4; ++v) {
      const __m256i weights = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 16 * v)));
      for (int r = 0; r < rows; ++r) sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(four[r], weights));
    }
  }
  const std::int64_t n = t.columns - column;
  for (int r = 0; r < rows; ++r) {
    for (int half = 0; half < 2 && 8 * half < n; ++half) {
      const std::int64_t j = column + 8 * half;
      __m256i sum = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[r][2 * half], sums[r][2 * half + 1]), 0b11011000);
      if (t.column_factor != nullptr) {
        sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(_mm256_set1_epi32(t.row_sums[row + r]), load(t.column_factor + j)));
      }
      if (const IntegerRequantisation& by = t.requantisation; by.y != nullptr) {
        store_bytes(by.y + (row + r) * by.y_step + j, requantised(by, sum, j), n - 8 * half);
        continue;
      }
      const __m256i factor = _mm256_set1_epi32(t.row_factor[(row + r) * t.row_factor_step]);
      sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(factor, load(t.column_sums + j)));
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

template <bool a_signed>
void multiply(const IntegerTiles& t) {
  for (std::int64_t column = 0; column < t.columns; column += 16) {
    const std::int8_t* const b = panel_at(t, column);
    std::int64_t row = 0;
    for (; row + 2 <= t.rows; row += 2) tile<a_signed, 2>(t, b, row, column);
    if (row < t.rows) tile<a_signed, 1>(t, b, row, column);
  }
}

}  // namespace

void multiply_integer_tiles(const IntegerTiles& tiles) {
  tiles.a_signed ? multiply<true>(tiles) : multiply<false>(tiles);
}

void requantise_row(const IntegerRequantisation& by, const std::int32_t* sums, std::int64_t n) {
  std::int64_t j = 0;
  for (; j + 8 <= n; j += 8) store_bytes(by.y + j, requantised(by, load(sums + j), j), 8);
  for (; j < n; ++j) by.y[j] = openblas::requantised(by, sums[j], j);
}

}  // namespace tenon::openblas::avx2

TENON_END_TARGET

#endif
