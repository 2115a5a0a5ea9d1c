// SPDX-License-Identifier: Apache-2.0
// Tiles of Intel AMX: tile registers of 16 rows of 64 bytes. tdpbf16ps multiplies 16 rows of 32 elements with 16 pairs of 16 columns, which
// are the lines of a panel, and adds the products to 16 x 16 sums.
#include <algorithm>
#include <cstdint>

#include "gemm/bf16_row_store.h"
#include "gemm/bf16_tile_kernels.h"

#if TENON_X86

TENON_BEGIN_TARGET("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")

namespace tenon::openblas::bf16 {
namespace {

constexpr std::int64_t tile_rows = 16, tile_k = 32;
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
    const Bf16RowStore store(p, column);
    for (std::int64_t row = begin; row < end; row += rows) {
      block<two>(p.a + row * p.a_step, p.a_step, p.a_offsets, panel, p.k, rows, sums);
      store.put_rows(row, rows, sums);
    }
  }
}

}  // namespace

void multiply_amx(const PanelProduct<sdk::BFloat16>& p) {
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

}  // namespace tenon::openblas::bf16

TENON_END_TARGET

#endif
