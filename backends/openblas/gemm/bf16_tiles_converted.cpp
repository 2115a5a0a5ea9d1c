// SPDX-License-Identifier: Apache-2.0
// Products of bf16 for every processor: pairs are converted to f32 in registers.
#include "simd/foreach_target.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "gemm/bf16_tile_kernels.h"
#include "simd/activations.h"
#include "simd/bf16.h"
#include "simd/unroll.h"

#ifndef TENON_OPENBLAS_BF16_BLOCK
#define TENON_OPENBLAS_BF16_BLOCK
namespace tenon::openblas {
namespace {

using bf16::pair_at, bf16::width;

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
void activate_vectors(const sdk::Activation& activation, float* x, std::int64_t n) {
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

void multiply_in_vectors(const PanelProduct<sdk::BFloat16>& p) {
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
namespace tenon::openblas::bf16 {

void activate_block(const sdk::Activation& activation, float* x, std::int64_t n) {
  TENON_DISPATCH(activate_vectors)(activation, x, n);
}

void multiply_converted(const PanelProduct<sdk::BFloat16>& product) {
  TENON_DISPATCH(multiply_in_vectors)(product);
}

}  // namespace tenon::openblas::bf16
#endif
