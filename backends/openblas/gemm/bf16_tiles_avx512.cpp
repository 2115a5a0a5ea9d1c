// SPDX-License-Identifier: Apache-2.0
// Tiles of AVX512_BF16.
#include "gemm/bf16_row_store.h"
#include "gemm/bf16_tile_kernels.h"
#include "gemm/panel_prefetch.h"

#if TENON_X86

TENON_BEGIN_TARGET("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")

namespace tenon::openblas::bf16 {
namespace {

// Lines of a panel that are prefetched, 4 KiB.
constexpr std::int64_t lines_ahead = 32;

inline __m512bh pairs(__m512i words) {
  return reinterpret_cast<const __m512bh&>(words);
}

/// `rows` rows from `row` on, a panel's columns.
template <int rows>
void tile(const PanelProduct<sdk::BFloat16>& p, std::int64_t row, const sdk::BFloat16* panel, const Bf16RowStore& store,
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

using TileFunction = void (*)(const PanelProduct<sdk::BFloat16>&, std::int64_t, const sdk::BFloat16*, const Bf16RowStore&,
                              const PanelPrefetch::Cursor&);

}  // namespace

void multiply_avx512(const PanelProduct<sdk::BFloat16>& p) {
  static constexpr TileFunction tiles[tile_rows] = {&tile<1>, &tile<2>, &tile<3>, &tile<4>,  &tile<5>,  &tile<6>,
                                                    &tile<7>, &tile<8>, &tile<9>, &tile<10>, &tile<11>, &tile<12>};
  if (p.rows == 0) return;
  const std::int64_t count = sdk::ceil_div(p.rows, tile_rows), step = panel_step<sdk::BFloat16>(p.k);
  for (std::int64_t column = 0; column < p.columns; column += width) {
    const sdk::BFloat16* const panel = p.panels + column / width * step;
    const Bf16RowStore store(p, column);
    PanelPrefetch next(column + width < p.columns ? panel + step : p.next_panels, step * static_cast<std::int64_t>(sizeof *panel), count,
                       p.k / 2);
    for (std::int64_t t = 0; t < count; ++t) {
      const std::int64_t row = t * p.rows / count, rows = (t + 1) * p.rows / count - row;
      tiles[rows - 1](p, row, panel, store, next.take(panel));
    }
  }
}

}  // namespace tenon::openblas::bf16

TENON_END_TARGET

#endif
