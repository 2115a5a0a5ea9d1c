// SPDX-License-Identifier: Apache-2.0
// bf16_panels.cpp - products of bf16 with sums in f32, by the instructions that the processor has, and the panels of pairs that they read.
#include <algorithm>
#include <cstdint>

#include "elementwise/transpose.h"
#include "gemm/bf16_tile_kernels.h"
#include "gemm/panels.h"
#include "simd/x86.h"

namespace tenon::openblas {

template <>
void pack_panel(const PanelSource<sdk::BFloat16>& from, std::int64_t panel, sdk::BFloat16* out_panels) {
  using bf16::width;
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
  if (product.a_offsets != nullptr) return bf16::multiply_amx(product);
  // The choice depends on the whole product, because instructions differ in the order of additions. The loads of a tile leave out every
  // other 64 bytes, which the processor's prefetcher does not follow well.
  const bool fills_tiles = product.k >= bf16::smallest_k_of_amx && !(product.streams && has_avx512_bf16());
  if (has_amx_bf16() && fills_tiles) return bf16::multiply_amx(product);
  if (has_avx512_bf16()) return bf16::multiply_avx512(product);
#endif
  bf16::multiply_converted(product);
}

}  // namespace tenon::openblas
