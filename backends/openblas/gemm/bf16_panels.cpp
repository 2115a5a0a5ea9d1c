// SPDX-License-Identifier: Apache-2.0
// bf16_panels.cpp - products of bf16 with sums in f32. Processors with AVX512_BF16 add the products of a pair of neighbours along k in one
// instruction, those with Intel AMX 16 x 16 sums of 32 products; elsewhere pairs are converted to f32 in registers.
#include "simd/foreach_target.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "elementwise/transpose.h"
#include "gemm/panel_prefetch.h"
#include "gemm/panels.h"
#include "simd/activations.h"
#include "simd/bf16.h"
#include "simd/unroll.h"
#include "simd/x86.h"

#ifndef TENON_OPENBLAS_BF16_BLOCK
#define TENON_OPENBLAS_BF16_BLOCK
namespace tenon::openblas {
namespace {

constexpr std::int64_t width = panel_width<sdk::BFloat16>;
static_assert(width == 32);

/// Rows and columns of a product that are stored together.
struct Bf16Block {
  const PanelProduct<sdk::BFloat16>* product = nullptr;
  const float* sums = nullptr;  ///< (rows, 32), of which `columns` are in y
  std::int64_t row = 0, rows = 0;
  std::int64_t column = 0, columns = 0;

  /// Where row r of the block begins in y and in the residual.
  std::int64_t at(std::int64_t r) const {
    return (product->y_offsets == nullptr ? (row + r) * product->y_step : product->y_offsets[row + r]) + column;
  }
  bool is_stored(std::int64_t r) const { return product->y_offsets == nullptr || product->y_offsets[row + r] >= 0; }
};

/// The elements k and k + 1 of a row as one word.
inline std::uint32_t pair_at(const sdk::BFloat16* row) {
  std::uint32_t word;
  std::memcpy(&word, row, sizeof word);
  return word;
}

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3
constexpr int bf16_tile_rows = 14;
#else
constexpr int bf16_tile_rows = 6;
#endif

template <class Activate>
void store_rows(const Bf16Block& block, const Activate& activate) {
  const Floats d;
  const PanelProduct<sdk::BFloat16>& p = *block.product;
  const auto alpha = hn::Set(d, p.alpha), beta = hn::Set(d, p.beta);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    if (!block.is_stored(r)) continue;
    const std::int64_t at = block.at(r);
    for (std::int64_t j = 0; j < block.columns; j += lanes(d)) {
      const std::int64_t n = block.columns - j;
      const bool whole = n >= lanes(d);
      const auto load = [&](const sdk::BFloat16* from) HWY_ATTR { return whole ? load_stored(d, from) : load_stored_first(d, from, n); };
      auto v = hn::Mul(alpha, hn::Load(d, block.sums + r * width + j));
      if (p.bias != nullptr) v = hn::Add(v, load(p.bias + block.column + j));
      if (p.residual != nullptr) v = hn::MulAdd(beta, load(p.residual + at + j), v);
      v = activate(d, v);
      if (p.wide_y != nullptr) {
        float* const to = p.wide_y + at + j;
        if (p.accumulates) v = hn::Add(v, whole ? hn::LoadU(d, to) : load_first(d, to, n));
        if (whole) {
          hn::StoreU(v, d, to);
        } else {
          store_first(v, d, to, n);
        }
      } else if (whole) {
        store_rounded(v, d, p.y + at + j);
      } else {
        store_rounded_first(v, d, p.y + at + j, n);
      }
    }
  }
}

/// y = activation(alpha sums + bias + beta residual) for the block.
void store_block(const Bf16Block& block) {
  with_activation<float>(block.product->activation, [&](const auto& activate) { store_rows(block, activate); });
}

/// n numbers, whole vectors of any instruction set.
void activate_block(const sdk::Activation& activation, float* x, std::int64_t n) {
  with_activation<float>(activation, [&](const auto& activate) { map(activate, x, x, n); });
}

/// Sums of R rows and a panel's columns, 2 vectors at a time: of the first elements of pairs, then of the second ones.
template <int R>
HWY_NOINLINE void tile(const sdk::BFloat16* a, std::int64_t a_step, const sdk::BFloat16* panel, std::int64_t k, float* out_sums) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> words;
  const std::int64_t n = lanes(d);
  const auto as_floats = [&](auto v) HWY_ATTR { return hn::BitCast(d, v); };
  for (std::int64_t column = 0; column < width; column += 2 * n) {
    hn::Vec<Floats> sums[R][2];
    TENON_UNROLL
    for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = hn::Zero(d);
    const auto* line = reinterpret_cast<const std::uint32_t*>(panel) + column;
    std::int64_t i = 0;
    for (; i + 2 <= k; i += 2, line += width) {
      const auto b0 = hn::LoadU(words, line), b1 = hn::LoadU(words, line + n);
      {
        const auto first0 = as_floats(hn::ShiftLeft<16>(b0)), first1 = as_floats(hn::ShiftLeft<16>(b1));
        TENON_UNROLL
        for (int r = 0; r < R; ++r) {
          const auto x = hn::Set(d, std::bit_cast<float>(pair_at(a + r * a_step + i) << 16));
          sums[r][0] = hn::MulAdd(x, first0, sums[r][0]);
          sums[r][1] = hn::MulAdd(x, first1, sums[r][1]);
        }
      }
      const auto high = hn::Set(words, 0xffff0000u);
      const auto second0 = as_floats(hn::And(b0, high)), second1 = as_floats(hn::And(b1, high));
      TENON_UNROLL
      for (int r = 0; r < R; ++r) {
        const auto x = hn::Set(d, std::bit_cast<float>(pair_at(a + r * a_step + i) & 0xffff0000u));
        sums[r][0] = hn::MulAdd(x, second0, sums[r][0]);
        sums[r][1] = hn::MulAdd(x, second1, sums[r][1]);
      }
    }
    if (i < k) {
      const auto first0 = as_floats(hn::ShiftLeft<16>(hn::LoadU(words, line)));
      const auto first1 = as_floats(hn::ShiftLeft<16>(hn::LoadU(words, line + n)));
      TENON_UNROLL
      for (int r = 0; r < R; ++r) {
        const auto x = hn::Set(d, std::bit_cast<float>(static_cast<std::uint32_t>(a[r * a_step + i].bits) << 16));
        sums[r][0] = hn::MulAdd(x, first0, sums[r][0]);
        sums[r][1] = hn::MulAdd(x, first1, sums[r][1]);
      }
    }
    TENON_UNROLL
    for (int r = 0; r < R; ++r) {
      hn::Store(sums[r][0], d, out_sums + r * width + column);
      hn::Store(sums[r][1], d, out_sums + r * width + column + n);
    }
  }
}

using TileFunction = void (*)(const sdk::BFloat16*, std::int64_t, const sdk::BFloat16*, std::int64_t, float*);

template <int... R>
TileFunction tile_of(std::int64_t rows, std::integer_sequence<int, R...>) {
  static constexpr TileFunction tiles[] = {&tile<R + 1>...};
  return tiles[rows - 1];
}

void multiply_converted(const PanelProduct<sdk::BFloat16>& p) {
  HWY_ALIGN float sums[bf16_tile_rows * width];
  const std::int64_t tiles = sdk::ceil_div(p.rows, std::int64_t{bf16_tile_rows});
  for (std::int64_t column = 0; column < p.columns; column += width) {
    const sdk::BFloat16* const panel = p.panels + column / width * panel_step<sdk::BFloat16>(p.k);
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::int64_t row = t * p.rows / tiles, rows = (t + 1) * p.rows / tiles - row;
      tile_of(rows, std::make_integer_sequence<int, bf16_tile_rows>())(p.a + row * p.a_step, p.a_step, panel, p.k, sums);
      store_block({&p, sums, row, rows, column, std::min(width, p.columns - column)});
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

#if TENON_X86

TENON_BEGIN_TARGET("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")

namespace avx512 {

inline __m512 as_floats(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

inline __m512 floats_at(const sdk::BFloat16* from) {
  return as_floats(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

/// Stores rows of y = activation(alpha sums + bias + beta residual) for the columns of a panel. Unlike store_block, the instruction that
/// rounds takes subnormal results for zero, as those that multiply do.
class RowStore {
 public:
  RowStore(const PanelProduct<sdk::BFloat16>& p, std::int64_t column) : p_(p), column_(column) {
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
    TENON_DISPATCH(activate_block)(p_.activation, sums, rows * width);
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

// Lines of a panel that are prefetched, 4 KiB.
constexpr std::int64_t lines_ahead = 32;

inline __m512bh pairs(__m512i words) {
  return reinterpret_cast<const __m512bh&>(words);
}

/// `rows` rows from `row` on, a panel's columns.
template <int rows>
void tile(const PanelProduct<sdk::BFloat16>& p, std::int64_t row, const sdk::BFloat16* panel, const RowStore& store,
          const PanelPrefetch::Cursor& next) {
  const sdk::BFloat16* const a = p.a + row * p.a_step;
  __m512 sums[rows][2];
  TENON_UNROLL
  for (int r = 0; r < rows; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
  std::int64_t i = 0;
  const char* ahead = next.from;
  for (; i + 2 <= p.k; i += 2, panel += 2 * width, ahead += next.step) {
    const __m512i b0 = _mm512_loadu_si512(panel), b1 = _mm512_loadu_si512(panel + width);
    _mm_prefetch(ahead, _MM_HINT_T1);
    if constexpr (rows <= 2) {  // bound by memory
      _mm_prefetch(reinterpret_cast<const char*>(panel + lines_ahead * 2 * width), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(panel + lines_ahead * 2 * width + width), _MM_HINT_T0);
    }
    TENON_UNROLL
    for (int r = 0; r < rows; ++r) {
      const __m512i pair = _mm512_set1_epi32(static_cast<int>(pair_at(a + r * p.a_step + i)));
      sums[r][0] = _mm512_dpbf16_ps(sums[r][0], pairs(pair), pairs(b0));
      sums[r][1] = _mm512_dpbf16_ps(sums[r][1], pairs(pair), pairs(b1));
    }
  }
  if (i < p.k) {
    const __m512i b0 = _mm512_loadu_si512(panel), b1 = _mm512_loadu_si512(panel + width);
    TENON_UNROLL
    for (int r = 0; r < rows; ++r) {
      const __m512i pair = _mm512_set1_epi32(a[r * p.a_step + i].bits);
      sums[r][0] = _mm512_dpbf16_ps(sums[r][0], pairs(pair), pairs(b0));
      sums[r][1] = _mm512_dpbf16_ps(sums[r][1], pairs(pair), pairs(b1));
    }
  }
  if (store.is_plain()) {
    return p.residual == nullptr ? store.put_tile<false, rows>(row, sums) : store.put_tile<true, rows>(row, sums);
  }
  if (!store.calls()) {
    TENON_UNROLL
    for (int r = 0; r < rows; ++r) store.put(row + r, sums[r][0], sums[r][1]);
    return;
  }
  alignas(64) float block[rows * width];
  TENON_UNROLL
  for (int r = 0; r < rows; ++r) {
    _mm512_store_ps(block + r * width, sums[r][0]);
    _mm512_store_ps(block + r * width + 16, sums[r][1]);
  }
  store.put_rows(row, rows, block);
}

constexpr std::int64_t tile_rows = 12;

using TileFunction = void (*)(const PanelProduct<sdk::BFloat16>&, std::int64_t, const sdk::BFloat16*, const RowStore&,
                              const PanelPrefetch::Cursor&);

void multiply(const PanelProduct<sdk::BFloat16>& p) {
  static constexpr TileFunction tiles[tile_rows] = {&tile<1>, &tile<2>, &tile<3>, &tile<4>,  &tile<5>,  &tile<6>,
                                                    &tile<7>, &tile<8>, &tile<9>, &tile<10>, &tile<11>, &tile<12>};
  if (p.rows == 0) return;
  const std::int64_t count = sdk::ceil_div(p.rows, tile_rows), step = panel_step<sdk::BFloat16>(p.k);
  for (std::int64_t column = 0; column < p.columns; column += width) {
    const sdk::BFloat16* const panel = p.panels + column / width * step;
    const RowStore store(p, column);
    PanelPrefetch next(column + width < p.columns ? panel + step : p.next_panels, step * static_cast<std::int64_t>(sizeof *panel), count,
                       p.k / 2);
    for (std::int64_t t = 0; t < count; ++t) {
      const std::int64_t row = t * p.rows / count, rows = (t + 1) * p.rows / count - row;
      tiles[rows - 1](p, row, panel, store, next.take(panel));
    }
  }
}

}  // namespace avx512

TENON_END_TARGET

TENON_BEGIN_TARGET("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")

// Tile registers of 16 rows of 64 bytes. tdpbf16ps multiplies 16 rows of 32 elements with 16 pairs of 16 columns, which are the lines of a
// panel, and adds the products to 16 x 16 sums.
namespace amx {

constexpr std::int64_t tile_rows = 16, tile_k = 32;
// From here on the tiles pay.
constexpr std::int64_t smallest_k = 8;
constexpr std::int64_t line = 128;  // bytes of a line of a panel, and of a row of sums

/// Whether the rows of a are tiles as they are: k is even and too small for a whole tile.
bool is_short(std::int64_t k) {
  return k < tile_k && k % 2 == 0;
}

/// Tiles for `rows` rows of sums, at most 32, and k elements.
AmxTileConfig config_for(std::int64_t rows, std::int64_t k) {
  AmxTileConfig config;
  const std::int64_t first = std::min(rows, tile_rows), second = std::max<std::int64_t>(1, rows - first);
  for (const int tile : {0, 1, 4}) config.rows[tile] = static_cast<unsigned char>(first);
  for (const int tile : {2, 3, 5}) config.rows[tile] = static_cast<unsigned char>(second);
  if (!is_short(k)) return config;
  for (const int tile : {4, 5}) config.bytes_per_row[tile] = static_cast<unsigned short>(2 * k);
  for (const int tile : {6, 7}) config.rows[tile] = static_cast<unsigned char>(k / 2);
  return config;
}

/// Sums of `rows` rows, for which the tiles are configured; two: of more than 16.
template <bool two>
inline void block(const sdk::BFloat16* a, std::int64_t a_step, const std::int32_t* offsets, const sdk::BFloat16* panel, std::int64_t k,
                  std::int64_t rows, float* out_sums) {
  const std::int64_t step = a_step * 2;
  const sdk::BFloat16* const below = a + tile_rows * a_step;
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (two) {
    _tile_zero(2);
    _tile_zero(3);
  }
  std::int64_t i = 0;
  const std::int64_t step_k = is_short(k) ? k : tile_k;
  for (; i + step_k <= k; i += step_k, panel += tile_k * width) {
    load_tile<6>(panel, line);
    load_tile<7>(panel + width, line);
    const std::int64_t at = offsets == nullptr ? i : offsets[i / tile_k];
    load_tile<4>(a + at, step);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (two) {
      load_tile<5>(below + at, step);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  if (i < k) {
    // Elements of a from k on may be those of the next row, which may be infinite.
    alignas(64) sdk::BFloat16 rest[2 * tile_rows][tile_k];
    const auto mask = static_cast<__mmask32>((1u << (k - i)) - 1);
    for (std::int64_t r = 0; r < rows; ++r) _mm512_store_si512(rest[r], _mm512_maskz_loadu_epi16(mask, a + r * a_step + i));
    load_tile<6>(panel, line);
    load_tile<7>(panel + width, line);
    load_tile<4>(rest, tile_k * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (two) {
      load_tile<5>(rest[tile_rows], tile_k * 2);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  store_tile<0>(out_sums, line);
  store_tile<1>(out_sums + 16, line);
  if constexpr (two) {
    store_tile<2>(out_sums + tile_rows * width, line);
    store_tile<3>(out_sums + tile_rows * width + 16, line);
  }
}

/// Multiplies rows [begin, end) by all panels, `rows` at a time, for which the tiles are configured.
template <bool two>
void multiply_rows(const PanelProduct<sdk::BFloat16>& p, std::int64_t begin, std::int64_t end, std::int64_t rows) {
  alignas(64) float sums[2 * tile_rows * width];
  for (std::int64_t column = 0; column < p.columns; column += width) {
    const sdk::BFloat16* const panel = p.panels + column / width * panel_step<sdk::BFloat16>(p.k);
    const avx512::RowStore store(p, column);
    for (std::int64_t row = begin; row < end; row += rows) {
      block<two>(p.a + row * p.a_step, p.a_step, p.a_offsets, panel, p.k, rows, sums);
      store.put_rows(row, rows, sums);
    }
  }
}

void multiply(const PanelProduct<sdk::BFloat16>& p) {
  const std::int64_t whole = p.rows / (2 * tile_rows) * (2 * tile_rows), left = p.rows - whole;
  if (whole > 0) {
    const AmxTileConfig config = config_for(2 * tile_rows, p.k);
    load_tile_config(config);
    multiply_rows<true>(p, 0, whole, 2 * tile_rows);
  }
  if (left > 0) {
    const AmxTileConfig config = config_for(left, p.k);
    load_tile_config(config);
    if (left > tile_rows) {
      multiply_rows<true>(p, whole, p.rows, left);
    } else {
      multiply_rows<false>(p, whole, p.rows, left);
    }
  }
  _tile_release();
}

}  // namespace amx

TENON_END_TARGET

#endif

}  // namespace

template <>
void pack_panel(const PanelSource<sdk::BFloat16>& from, std::int64_t panel, sdk::BFloat16* out_panels) {
  const bool one_tap = from.taps_high * from.taps_wide == 1;
  const bool has_pairs = from.column_step % 2 == 0 && reinterpret_cast<std::uintptr_t>(from.data) % sizeof(std::uint32_t) == 0;
  const bool rows = one_tap && from.column_step == 1, columns = one_tap && from.inner_step == 1 && has_pairs;
  if (!rows && !columns) return pack_panel_by_elements(from, panel, out_panels);
  const std::int64_t k = from.inner, size = panel_step<sdk::BFloat16>(k), first = panel * width, n = std::min(width, from.columns - first);
  auto* const out = reinterpret_cast<std::uint32_t*>(out_panels + panel * size);
  const auto* const data = reinterpret_cast<const std::uint16_t*>(from.data);
  if (n < width || k % PanelLayout<sdk::BFloat16>::k_multiple != 0) std::fill_n(out, size / 2, 0u);
  if (rows) {
    for (std::int64_t i = 0; i < k; i += 2) {
      const std::uint16_t* const line = data + i * from.inner_step + first;
      const std::uint16_t* const next = line + from.inner_step;
      std::uint32_t* const to = out + i / 2 * width;
      if (i + 1 < k) {
        for (std::int64_t j = 0; j < n; ++j) to[j] = line[j] | static_cast<std::uint32_t>(next[j]) << 16;
      } else {
        for (std::int64_t j = 0; j < n; ++j) to[j] = line[j];
      }
    }
    return;
  }
  const std::uint16_t* const lines = data + first * from.column_step;
  transpose_block(reinterpret_cast<const std::uint32_t*>(lines), from.column_step / 2, out, width, k / 2, n);
  if (k % 2 != 0) {
    for (std::int64_t j = 0; j < n; ++j) out[k / 2 * width + j] = lines[j * from.column_step + k - 1];
  }
}

bool bf16_takes_offsets(InstructionSet set) {
  return has_amx_bf16(set);
}

template <>
void multiply_panels(const PanelProduct<sdk::BFloat16>& product) {
#if TENON_X86
  // Offsets were chosen for the instructions that take them, which the caller's instance of the backend may use whatever another one may.
  if (product.a_offsets != nullptr) return amx::multiply(product);
  // The choice depends on the whole product, because instructions differ in the order of additions. The loads of a tile leave out every
  // other 64 bytes, which the processor's prefetcher does not follow well.
  const bool fills_tiles = product.k >= amx::smallest_k && !(product.streams && has_avx512_bf16());
  if (has_amx_bf16() && fills_tiles) return amx::multiply(product);
  if (has_avx512_bf16()) return avx512::multiply(product);
#endif
  TENON_DISPATCH(multiply_converted)(product);
}

}  // namespace tenon::openblas
#endif
