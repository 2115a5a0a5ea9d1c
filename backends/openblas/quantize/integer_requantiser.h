// SPDX-License-Identifier: Apache-2.0
// integer_requantiser.h - requantisation of sums in registers of AVX-512, for the tiles of VNNI and AMX.
#pragma once

#include <algorithm>
#include <cstdint>

#include "quantize/integer_tiles.h"
#include "simd/unroll.h"
#include "simd/x86.h"

#if TENON_X86

TENON_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")

namespace tenon::openblas::vnni {

/// Lanes [0, n) of 16.
inline __mmask16 first(std::int64_t n) {
  return static_cast<__mmask16>((1u << std::min<std::int64_t>(n, 16)) - 1);
}

/// Bytes of sums to which the bias was added. Packing saturates integers; products beyond 2^30 are bounded before they become integers, and
/// NaN becomes the integer whose byte is 0. Products with small factors, which most are, are neither.
class Requantiser {
 public:
  explicit Requantiser(const IntegerRequantisation& by)
      : zero_point_(_mm512_set1_epi16(static_cast<short>(by.zero_point))), is_signed_(by.low < 0) {}

  /// Whether all sums times these factors are numbers that fit 32 bits.
  static bool are_small(__m512 factors) { return _mm512_cmp_ps_mask(_mm512_abs_ps(factors), _mm512_set1_ps(0.5F), _CMP_LT_OQ) == 0xffff; }
  /// The same of n factors, a multiple of 16.
  static bool are_small(const float* factors, std::int64_t n) {
    for (std::int64_t j = 0; j < n; j += 16) {
      if (!are_small(_mm512_loadu_ps(factors + j))) return false;
    }
    return true;
  }

  /// round(sum factor)
  template <bool small_factors = false>
  [[gnu::always_inline]] __m512i scaled(__m512i sum, __m512 factor) const {
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), factor);
    if constexpr (small_factors) return _mm512_cvtps_epi32(product);
    const __m512i integers = _mm512_cvtps_epi32(_mm512_min_ps(product, _mm512_set1_ps(0x1p30F)));
    const __m512i zero_point = _mm512_cvtepi16_epi32(_mm512_castsi512_si256(zero_point_));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(product, product, _CMP_UNORD_Q);
    return _mm512_mask_sub_epi32(integers, is_nan, _mm512_setzero_si512(), zero_point);
  }
  /// The bytes of 64 scaled sums in the order of packing, which works within lanes of 128 bits: lane l has elements 4 l to 4 l + 3 of a0,
  /// of a1, of b0 and of b1.
  [[gnu::always_inline]] __m512i pack(__m512i a0, __m512i a1, __m512i b0, __m512i b1) const {
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(a0, a1), zero_point_);
    const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(b0, b1), zero_point_);
    return is_signed_ ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
  }
  /// Two rows of 32 scaled sums as 32 bytes each, the first row in the low half.
  [[gnu::always_inline]] __m512i operator()(__m512i a0, __m512i a1, __m512i b0, __m512i b1) const {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, pack(a0, a1, b0, b1));
  }
  /// 16 scaled sums as bytes.
  __m128i operator()(__m512i a) const {
    return _mm512_castsi512_si128((*this)(a, _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()));
  }

 private:
  __m512i zero_point_;
  bool is_signed_;
};

/// Adds what the zero points contribute to 16 sums and stores those that are in y.
inline void store(const IntegerTiles& t, __m512i sum, std::int64_t row, std::int64_t column) {
  if (t.column_factor != nullptr) {
    const __m512i by = _mm512_set1_epi32(t.row_sums[row]);
    sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(by, _mm512_loadu_si512(t.column_factor + column)));
  }
  const __mmask16 mask = first(t.columns - column);
  if (const IntegerRequantisation& by = t.requantisation; by.y != nullptr) {
    const Requantiser requantised(by);
    const __m512i scaled = requantised.scaled(sum, _mm512_loadu_ps(by.factor + column));
    return _mm_mask_storeu_epi8(by.y + row * by.y_step + column, mask, requantised(scaled));
  }
  const __m512i factor = _mm512_set1_epi32(t.row_factor[row * t.row_factor_step]);
  sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(factor, _mm512_loadu_si512(t.column_sums + column)));
  _mm512_mask_storeu_epi32(t.y + row * t.y_step + column, mask, sum);
}

/// Requantises rows of sums of a panel's columns, which the bias is part of, two at a time.
template <bool small_factors>
class PanelRequantiser {
 public:
  // The members are copies: the compiler takes stores of bytes for changes of anything.
  PanelRequantiser(const IntegerTiles& t, std::int64_t column)
      : requantised_(t.requantisation),
        y_(t.requantisation.y + column),
        y_step_(t.requantisation.y_step),
        y_offsets_(t.y_offsets),
        row_sums_(t.column_factor == nullptr ? nullptr : t.row_sums) {
    const std::int64_t n = t.columns - column;
    mask_ = n >= integer_panel_width ? ~__mmask32{0} : (__mmask32{1} << n) - 1;
    for (int v = 0; v < 2; ++v) {
      factors_[v] = _mm512_loadu_ps(t.requantisation.factor + column + 16 * v);
      column_factors_[v] = row_sums_ == nullptr ? _mm512_setzero_si512() : _mm512_loadu_si512(t.column_factor + column + 16 * v);
    }
  }

  /// Whether put_tile() may be called: all columns of the panel are stored, row after row, and zero points of weights are 0.
  bool is_plain() const { return mask_ == ~__mmask32{0} && y_offsets_ == nullptr && row_sums_ == nullptr; }

  /// The same as put() for all rows of a tile, without branches in each: products with a small k end here often.
  template <int rows>
  [[gnu::always_inline]] void put_tile(std::int64_t row, const __m512i (&sums)[rows][2]) const {
    const Requantiser requantised = requantised_;
    const __m512 factors[2] = {factors_[0], factors_[1]};
    const std::int64_t step = y_step_;
    std::uint8_t* const y = y_ + row * step;
    TENON_UNROLL
    for (int r = 0; r < rows; r += 2) {
      const int other = r + 1 < rows ? r + 1 : r;
      const __m512i bytes = requantised(
          requantised.scaled<small_factors>(sums[r][0], factors[0]), requantised.scaled<small_factors>(sums[r][1], factors[1]),
          requantised.scaled<small_factors>(sums[other][0], factors[0]), requantised.scaled<small_factors>(sums[other][1], factors[1]));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + r * step), _mm512_castsi512_si256(bytes));
      if (r + 1 < rows) _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + (r + 1) * step), _mm512_extracti64x4_epi64(bytes, 1));
    }
  }

  /// Rows `row` and `row` + 1; with one, the second is not stored.
  template <bool one = false>
  [[gnu::always_inline]] void put(std::int64_t row, __m512i a0, __m512i a1, __m512i b0, __m512i b1) const {
    const __m512i bytes =
        requantised_(scaled(row, a0, 0), scaled(row, a1, 1), scaled(row + (one ? 0 : 1), b0, 0), scaled(row + (one ? 0 : 1), b1, 1));
    store(row, _mm512_castsi512_si256(bytes));
    if constexpr (!one) store(row + 1, _mm512_extracti64x4_epi64(bytes, 1));
  }

 private:
  [[gnu::always_inline]] __m512i scaled(std::int64_t row, __m512i sum, int v) const {
    if (row_sums_ != nullptr) sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(row_sums_[row]), column_factors_[v]));
    return requantised_.scaled<small_factors>(sum, factors_[v]);
  }
  void store(std::int64_t row, __m256i bytes) const {
    if (y_offsets_ == nullptr) {
      _mm256_mask_storeu_epi8(y_ + row * y_step_, mask_, bytes);
    } else if (y_offsets_[row] >= 0) {
      _mm256_mask_storeu_epi8(y_ + y_offsets_[row], mask_, bytes);
    }
  }

  Requantiser requantised_;
  std::uint8_t* y_;
  std::int64_t y_step_;
  const std::int64_t* y_offsets_;
  const std::int32_t* row_sums_;
  __mmask32 mask_;
  __m512 factors_[2];
  __m512i column_factors_[2];
};

}  // namespace tenon::openblas::vnni

TENON_END_TARGET

#endif
