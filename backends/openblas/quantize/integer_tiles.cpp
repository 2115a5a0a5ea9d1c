// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "gemm/panel_prefetch.h"
#include "simd/instruction_set.h"
#include "simd/unroll.h"
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

/// The lines of panel `column` / integer_panel_width, from `column` on.
inline const std::int8_t* panel_at(const IntegerTiles& t, std::int64_t column) {
  const std::int64_t panel = column / integer_panel_width * integer_panel_width;
  return t.panels + panel * padded_k(t.k) + (column - panel) * integer_group;
}

/// The panel after `panel`, that of `column`; NULL: none.
inline const std::int8_t* next_panel(const IntegerTiles& t, std::int64_t column, const std::int8_t* panel) {
  return column + integer_panel_width < t.columns ? panel + integer_panel_bytes(t.k) : t.next_panel;
}

/// In plain loops.
inline std::uint8_t requantised(const IntegerRequantisation& by, std::int32_t sum, std::int64_t column) {
  const auto biased = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(by.bias[column]));
  const float scaled = static_cast<float>(biased) * by.factor[column];
  const auto low = static_cast<float>(by.low - by.zero_point), high = static_cast<float>(by.high - by.zero_point);
  const float bounded = scaled > low ? (scaled < high ? scaled : high) : low;
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(std::nearbyint(bounded)) + by.zero_point);
}

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
void multiply_portable(const IntegerTiles& t) {
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

#if TENON_X86

TENON_BEGIN_TARGET("avx2,fma")

// A pair of products of u8 and i8 exceeds the i16 of vpmaddubsw, so both are widened to i16 for vpmaddwd.
namespace avx2 {

inline __m256i load(const std::int32_t* list) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(list));
}

/// 8 sums as bytes of y, in its low 8 bytes.
inline __m128i requantised(const IntegerRequantisation& by, __m256i sum, std::int64_t column) {
  sum = _mm256_add_epi32(sum, load(by.bias + column));
  __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(by.factor + column));
  scaled = _mm256_max_ps(scaled, _mm256_set1_ps(static_cast<float>(by.low - by.zero_point)));
  scaled = _mm256_min_ps(scaled, _mm256_set1_ps(static_cast<float>(by.high - by.zero_point)));
  const __m256i integers = _mm256_add_epi32(_mm256_cvtps_epi32(scaled), _mm256_set1_epi32(by.zero_point));
  const __m256i bytes = _mm256_shuffle_epi8(integers, _mm256_set1_epi32(0x0c080400));
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

void requantise(const IntegerRequantisation& by, const std::int32_t* sums, std::int64_t n) {
  std::int64_t j = 0;
  for (; j + 8 <= n; j += 8) store_bytes(by.y + j, requantised(by, load(sums + j), j), 8);
  for (; j < n; ++j) by.y[j] = openblas::requantised(by, sums[j], j);
}

}  // namespace avx2

TENON_END_TARGET

TENON_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")

namespace vnni {

/// Lanes [0, n) of 16.
inline __mmask16 first(std::int64_t n) {
  return static_cast<__mmask16>((1u << std::min<std::int64_t>(n, 16)) - 1);
}

/// Bytes of sums to which the bias was added. Sums beyond 2^30 times a factor are bounded before they become integers, the others by
/// packing, which saturates. Factors below 1/2, which most are, need no bound.
class Requantiser {
 public:
  explicit Requantiser(const IntegerRequantisation& by)
      : zero_point_(_mm512_set1_epi16(static_cast<short>(by.zero_point))), is_signed_(by.low < 0) {}

  template <bool bounded = false>
  static __m512i scaled(__m512i sum, __m512 factor) {
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), factor);
    return _mm512_cvtps_epi32(bounded ? product : _mm512_min_ps(product, _mm512_set1_ps(0x1p30F)));
  }
  static bool are_small(__m512 factors) { return _mm512_cmp_ps_mask(_mm512_abs_ps(factors), _mm512_set1_ps(0.5F), _CMP_LT_OQ) == 0xffff; }
  /// Two rows of 32 scaled sums as 32 bytes each, the first row in the low half.
  __m512i operator()(__m512i a0, __m512i a1, __m512i b0, __m512i b1) const {
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(a0, a1), zero_point_);
    const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(b0, b1), zero_point_);
    const __m512i bytes = is_signed_ ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
    // Packing works within lanes of 128 bits.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, bytes);
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
    const __m512i scaled = Requantiser::scaled(sum, _mm512_loadu_ps(by.factor + column));
    return _mm_mask_storeu_epi8(by.y + row * by.y_step + column, mask, Requantiser(by)(scaled));
  }
  const __m512i factor = _mm512_set1_epi32(t.row_factor[row * t.row_factor_step]);
  sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(factor, _mm512_loadu_si512(t.column_sums + column)));
  _mm512_mask_storeu_epi32(t.y + row * t.y_step + column, mask, sum);
}

/// Requantises rows of sums of a panel's columns, which the bias is part of, two at a time. `bounded`: factors are small.
template <bool bounded>
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

  /// Rows `row` and `row` + 1; with one, the second is not stored.
  template <bool one = false>
  [[gnu::always_inline]] void put(std::int64_t row, __m512i a0, __m512i a1, __m512i b0, __m512i b1) const {
    const __m512i bytes =
        requantised_(scaled(row, a0, 0), scaled(row, a1, 1), scaled(row + (one ? 0 : 1), b0, 0), scaled(row + (one ? 0 : 1), b1, 1));
    store(row, _mm512_castsi512_si256(bytes));
    if constexpr (!one) store(row + 1, _mm512_extracti64x4_epi64(bytes, 1));
  }

 private:
  __m512i scaled(std::int64_t row, __m512i sum, int v) const {
    if (row_sums_ != nullptr) sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(row_sums_[row]), column_factors_[v]));
    return Requantiser::scaled<bounded>(sum, factors_[v]);
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

/// Requantises the sums of a tile.
template <bool bounded, int rows>
[[gnu::always_inline]] inline void requantise_tile(const IntegerTiles& t, const __m512i (&sums)[rows][2], std::int64_t row,
                                                   std::int64_t column) {
  const PanelRequantiser<bounded> requantised(t, column);
  TENON_UNROLL
  for (int r = 0; r + 1 < rows; r += 2) requantised.put(row + r, sums[r][0], sums[r][1], sums[r + 1][0], sums[r + 1][1]);
  constexpr int last = rows - 1;
  if constexpr (rows % 2 != 0) requantised.template put<true>(row + last, sums[last][0], sums[last][1], sums[last][0], sums[last][1]);
}

/// `rows` rows, the first of which is at `a`, and 16 `vectors` columns, from `row` and `column` on. The sums begin with the bias. The
/// instruction takes u8: an i8 a is read as a + 128, and -128 times the sums of the columns are added.
/// `by_parts`: as a_offsets says.
template <bool a_signed, bool by_parts, int rows, int vectors>
void tile(const IntegerTiles& t, const std::uint8_t* a, const std::int8_t* b, std::int64_t row, std::int64_t column,
          PanelPrefetch::Cursor next) {
  const std::int64_t step = t.a_step;
  __m512i sums[rows][vectors];
  TENON_UNROLL
  for (int v = 0; v < vectors; ++v) {
    __m512i begin = _mm512_setzero_si512();
    if (t.requantisation.y != nullptr) begin = _mm512_loadu_si512(t.requantisation.bias + column + 16 * v);
    if constexpr (a_signed) begin = _mm512_sub_epi32(begin, _mm512_slli_epi32(_mm512_loadu_si512(t.column_sums + column + 16 * v), 7));
    TENON_UNROLL
    for (int r = 0; r < rows; ++r) sums[r][v] = begin;
  }
  // A pointer for each three rows, since one for each row does not fit the registers.
  constexpr int pointers = (rows + 2) / 3;
  const std::uint8_t* from[pointers];
  const std::int64_t parts = by_parts ? t.k / 64 : 1, groups = by_parts ? 64 / integer_group : padded_k(t.k) / integer_group;
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
  if constexpr (vectors == 2) {
    if (t.requantisation.y != nullptr) {
      const float* const factors = t.requantisation.factor + column;
      const bool bounded = Requantiser::are_small(_mm512_loadu_ps(factors)) && Requantiser::are_small(_mm512_loadu_ps(factors + 16));
      return bounded ? requantise_tile<true>(t, sums, row, column) : requantise_tile<false>(t, sums, row, column);
    }
  }
  TENON_UNROLL
  for (int v = 0; v < vectors; ++v) {
    if (column + 16 * v >= t.columns) break;
    TENON_UNROLL
    for (int r = 0; r < rows; ++r) store(t, sums[r][v], row + r, column + 16 * v);
  }
}

constexpr std::int64_t tile_rows = 12;
using TileFunction = void (*)(const IntegerTiles&, const std::uint8_t*, const std::int8_t*, std::int64_t, std::int64_t,
                              PanelPrefetch::Cursor);

template <bool a_signed, bool by_parts, int vectors, int... rows>
TileFunction tile_of(std::int64_t height, std::integer_sequence<int, rows...>) {
  static constexpr TileFunction tiles[] = {&tile<a_signed, by_parts, rows + 1, vectors>...};
  return tiles[height - 1];
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
        (is_high ? high : low)(t, a, b, row, column, next.take(b));
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

void requantise(const IntegerRequantisation& by, const std::int32_t* sums, std::int64_t n) {
  const Requantiser requantised(by);
  for (std::int64_t j = 0; j < n; j += 16) {
    const __mmask16 mask = first(n - j);
    const __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(mask, sums + j), _mm512_maskz_loadu_epi32(mask, by.bias + j));
    const __m512i scaled = Requantiser::scaled(sum, _mm512_maskz_loadu_ps(mask, by.factor + j));
    _mm_mask_storeu_epi8(by.y + j, mask, requantised(scaled));
  }
}

}  // namespace vnni

TENON_END_TARGET

TENON_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,amx-tile,amx-int8")

// Intel AMX: tile registers of up to 16 rows of 64 bytes. tdpbusd multiplies 16 rows of `step` u8 with step / 4 groups of 16 columns of 4
// i8, which are the lines of a panel, and adds the products to 16 x 16 sums; tdpbssd does so for rows of i8.
namespace amx {

constexpr std::int64_t tile_rows = 16, few_rows = 256;

/// Requantises sums of `rows` rows, an even number, and a panel's columns.
template <bool bounded>
inline void requantise_rows(const IntegerTiles& t, const std::int32_t (*sums)[integer_panel_width], std::int64_t rows, std::int64_t row,
                            std::int64_t column) {
  const vnni::PanelRequantiser<bounded> requantised(t, column);
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
      scaled[i] = vnni::Requantiser::scaled(sum, factor);
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
    const float* const factors = t.requantisation.factor + column;
    const bool bounded =
        vnni::Requantiser::are_small(_mm512_loadu_ps(factors)) && vnni::Requantiser::are_small(_mm512_loadu_ps(factors + 16));
    return bounded ? requantise_rows<true>(t, sums, rows, row, column) : requantise_rows<false>(t, sums, rows, row, column);
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

}  // namespace amx

TENON_END_TARGET

#endif  // TENON_X86

template <bool a_signed>
void multiply_tiles(const IntegerTiles& tiles) {
#if TENON_X86
  // These were chosen for the instructions that take them, also if another instance has limited the instruction set since.
  if (tiles.line_rows != 0) return vnni::multiply<a_signed>(tiles);
  if (has_avx512_vnni()) {
    return tiles.rows >= amx::tile_rows && has_amx_int8() ? amx::multiply<a_signed>(tiles) : vnni::multiply<a_signed>(tiles);
  }
  if (instruction_set() >= InstructionSet::avx2) return avx2::multiply<a_signed>(tiles);
#endif
  multiply_portable<std::conditional_t<a_signed, std::int8_t, std::uint8_t>>(tiles);
}

}  // namespace

bool integer_tiles_take_offsets([[maybe_unused]] std::int64_t rows) {
#if TENON_X86
  return has_avx512_vnni() && has_amx_int8() && rows >= amx::tile_rows;
#else
  return false;
#endif
}

bool integer_tiles_take_lines() {
#if TENON_X86
  return has_avx512_vnni() && !has_amx_int8();
#else
  return false;
#endif
}

void multiply_integer_tiles(const IntegerTiles& tiles) {
  return tiles.a_signed ? multiply_tiles<true>(tiles) : multiply_tiles<false>(tiles);
}

void requantise_row(const IntegerRequantisation& by, const std::int32_t* sums, std::int64_t n) {
#if TENON_X86
  if (has_avx512_vnni()) return vnni::requantise(by, sums, n);
  if (instruction_set() >= InstructionSet::avx2) return avx2::requantise(by, sums, n);
#endif
  for (std::int64_t j = 0; j < n; ++j) by.y[j] = requantised(by, sums[j], j);
}

}  // namespace tenon::openblas
