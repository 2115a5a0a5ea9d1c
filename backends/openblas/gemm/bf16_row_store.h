// SPDX-License-Identifier: Apache-2.0
// bf16_row_store.h - stores sums in registers of AVX-512 as rows of a product of bf16, for the tiles of AVX512_BF16 and AMX.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "gemm/bf16_tile_kernels.h"
#include "simd/unroll.h"
#include "simd/x86.h"

#if TENON_X86

TENON_BEGIN_TARGET("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")

namespace tenon::openblas::bf16 {

inline __m512 as_floats(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

inline __m512 floats_at(const sdk::BFloat16* from) {
  return as_floats(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

/// Stores rows of y = activation(alpha sums + bias + beta residual) for the columns of a panel. Unlike store_block
/// (bf16_tiles_converted.cpp), the instruction that rounds takes subnormal results for zero, as those that multiply do.
class Bf16RowStore {
 public:
  Bf16RowStore(const PanelProduct<sdk::BFloat16>& p, std::int64_t column) : p_(p), column_(column) {
    const std::int64_t columns = std::min(width, p.columns - column);
    mask_ = static_cast<__mmask32>(columns == width ? 0xffffffffu : (1u << columns) - 1);
    alpha_ = _mm512_set1_ps(p.alpha);
    beta_ = _mm512_set1_ps(p.beta);
    bias_[0] = bias_[1] = _mm512_setzero_ps();
    if (p.bias != nullptr) {
      const __m512i bits = _mm512_maskz_loadu_epi16(mask_, p.bias + column);
      bias_[0] = as_floats(_mm512_castsi512_si256(bits));
      bias_[1] = as_floats(_mm512_extracti64x4_epi64(bits, 1));
    }
    const bool clips = p.activation == sdk::Activation::clip;
    compares_ = clips || p.activation == sdk::Activation::relu;
    calls_ = !compares_ && p.activation != sdk::Activation::none;
    lower_ = _mm512_set1_ps(clips ? p.activation.low : compares_ ? 0 : -std::numeric_limits<float>::infinity());
    upper_ = _mm512_set1_ps(clips ? p.activation.high : std::numeric_limits<float>::infinity());
  }

  /// Whether the activation is a function of a block in memory: put() must not be called then.
  bool calls() const { return calls_; }
  /// Whether put_tile() may be called: results of bf16 in all columns of the panel, one row after the other, without factors.
  bool is_plain() const {
    const bool adds = p_.alpha == 1 && (p_.residual == nullptr || p_.beta == 1);
    return adds && !calls_ && mask_ == 0xffffffffu && p_.wide_y == nullptr && p_.y_offsets == nullptr;
  }

  /// The same as put() for each of `rows` rows, without branches in each row: products with a small k end here often.
  template <bool adds_residual, int rows>
  void put_tile(std::int64_t row, const __m512 (&sums)[rows][2]) const {
    const std::int64_t step = p_.y_step;
    sdk::BFloat16* const y = p_.y + row * step + column_;
    const sdk::BFloat16* const residual = adds_residual ? p_.residual + row * step + column_ : nullptr;
    const __m512 bias[2] = {bias_[0], bias_[1]}, lower = lower_, upper = upper_;
    TENON_UNROLL
    for (int r = 0; r < rows; ++r) {
      __m512 low = _mm512_add_ps(sums[r][0], bias[0]), high = _mm512_add_ps(sums[r][1], bias[1]);
      if constexpr (adds_residual) {
        low = _mm512_add_ps(low, floats_at(residual + r * step));
        high = _mm512_add_ps(high, floats_at(residual + r * step + 16));
      }
      low = _mm512_min_ps(upper, _mm512_max_ps(lower, low));
      high = _mm512_min_ps(upper, _mm512_max_ps(lower, high));
      const __m512bh rounded = _mm512_cvtne2ps_pbh(high, low);
      _mm512_storeu_si512(y + r * step, reinterpret_cast<const __m512i&>(rounded));
    }
  }

  /// Row `row` of the product, from its sums in registers.
  void put(std::int64_t row, __m512 low, __m512 high) const {
    if (!is_stored(row)) return;
    const std::int64_t at = place(row);
    add(at, low, high);
    if (compares_) {  // NaN stays NaN: the second operand is the result where one is NaN
      low = _mm512_min_ps(upper_, _mm512_max_ps(lower_, low));
      high = _mm512_min_ps(upper_, _mm512_max_ps(lower_, high));
    }
    write(at, low, high);
  }

  /// Rows [row, row + rows), from `sums` (rows, 32), which it changes.
  void put_rows(std::int64_t row, std::int64_t rows, float* sums) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      float* const from = sums + r * width;
      __m512 low = _mm512_loadu_ps(from), high = _mm512_loadu_ps(from + 16);
      if (!calls_) {
        put(row + r, low, high);
        continue;
      }
      if (is_stored(row + r)) add(place(row + r), low, high);
      _mm512_storeu_ps(from, low);
      _mm512_storeu_ps(from + 16, high);
    }
    if (!calls_) return;
    activate_block(p_.activation, sums, rows * width);
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* const from = sums + r * width;
      if (is_stored(row + r)) write(place(row + r), _mm512_loadu_ps(from), _mm512_loadu_ps(from + 16));
    }
  }

 private:
  bool is_stored(std::int64_t row) const { return p_.y_offsets == nullptr || p_.y_offsets[row] >= 0; }
  /// Where the row begins in y and in the residual.
  std::int64_t place(std::int64_t row) const { return (p_.y_offsets == nullptr ? row * p_.y_step : p_.y_offsets[row]) + column_; }

  void add(std::int64_t at, __m512& low, __m512& high) const {
    low = _mm512_fmadd_ps(alpha_, low, bias_[0]);
    high = _mm512_fmadd_ps(alpha_, high, bias_[1]);
    if (p_.residual == nullptr) return;
    const __m512i bits = _mm512_maskz_loadu_epi16(mask_, p_.residual + at);
    low = _mm512_fmadd_ps(beta_, as_floats(_mm512_castsi512_si256(bits)), low);
    high = _mm512_fmadd_ps(beta_, as_floats(_mm512_extracti64x4_epi64(bits, 1)), high);
  }

  void write(std::int64_t at, __m512 low, __m512 high) const {
    if (p_.wide_y == nullptr) {
      const __m512bh rounded = _mm512_cvtne2ps_pbh(high, low);
      _mm512_mask_storeu_epi16(p_.y + at, mask_, reinterpret_cast<const __m512i&>(rounded));
      return;
    }
    const auto low_mask = static_cast<__mmask16>(mask_), high_mask = static_cast<__mmask16>(mask_ >> 16);
    float* const to = p_.wide_y + at;
    if (p_.accumulates) {
      low = _mm512_add_ps(low, _mm512_maskz_loadu_ps(low_mask, to));
      high = _mm512_add_ps(high, _mm512_maskz_loadu_ps(high_mask, to + 16));
    }
    _mm512_mask_storeu_ps(to, low_mask, low);
    _mm512_mask_storeu_ps(to + 16, high_mask, high);
  }

  const PanelProduct<sdk::BFloat16>& p_;
  std::int64_t column_;
  __mmask32 mask_;
  bool compares_, calls_;
  __m512 alpha_, beta_, bias_[2], lower_, upper_;
};

}  // namespace tenon::openblas::bf16

TENON_END_TARGET

#endif
