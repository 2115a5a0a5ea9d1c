// SPDX-License-Identifier: Apache-2.0
// bf16_tile_kernels.h - products of bf16 in panels for each instruction set, and what they share.
#pragma once

#include <cstdint>
#include <cstring>

#include "gemm/panels.h"

namespace tenon::openblas::bf16 {

inline constexpr std::int64_t width = panel_width<sdk::BFloat16>;
static_assert(width == 32);

/// The elements k and k + 1 of a row as one word.
inline std::uint32_t pair_at(const sdk::BFloat16* row) {
  std::uint32_t word;
  std::memcpy(&word, row, sizeof word);
  return word;
}

/// x = activation(x) for n numbers, whole vectors of any instruction set.
void activate_block(const sdk::Activation& activation, float* x, std::int64_t n);

/// Converts pairs to f32 in registers.
void multiply_converted(const PanelProduct<sdk::BFloat16>& product);

// The callers make sure that the processor has the instructions (x86.h).

/// Adds the products of a pair of neighbours along k in one instruction of AVX512_BF16.
void multiply_avx512(const PanelProduct<sdk::BFloat16>& product);

/// Adds 32 products to 16 x 16 sums in one instruction of Intel AMX.
void multiply_amx(const PanelProduct<sdk::BFloat16>& product);
/// From here on the tiles of AMX pay.
inline constexpr std::int64_t smallest_k_of_amx = 8;

}  // namespace tenon::openblas::bf16
