// SPDX-License-Identifier: Apache-2.0
// panels.h - products with a matrix that was packed ahead of time, by this backend's own register tiles. OpenBLAS packs both operands at
// every call, which constant weights do not need and a convolution with few rows does not amortise: docs/adr/0012 has the figures.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/rounding.h>

#include "simd/instruction_set.h"

namespace tenon::openblas {

/// The layout of panels, for every instruction set, so that packed weights do not depend on it. A panel is (k / group, width, group)
/// elements: the `group` neighbours along k whose products one instruction adds are next to each other. A line of `width` groups has 128
/// bytes. k is padded with zeros to a multiple of k_multiple.
template <class T>
struct PanelLayout {
  static constexpr std::int64_t group = 1, k_multiple = 1;
};
/// Pairs, and the 32 elements of a row of a tile of Intel AMX.
template <>
struct PanelLayout<sdk::BFloat16> {
  static constexpr std::int64_t group = 2, k_multiple = 32;
};

/// Columns of a panel.
template <class T>
inline constexpr std::int64_t panel_width = 128 / static_cast<std::int64_t>(sizeof(T)) / PanelLayout<T>::group;

template <class T>
std::int64_t panel_count(std::int64_t columns) {
  return (columns + panel_width<T> - 1) / panel_width<T>;
}

/// Elements between the panels of a matrix with k rows.
template <class T>
std::int64_t panel_step(std::int64_t k) {
  return sdk::round_up(k, PanelLayout<T>::k_multiple) * panel_width<T>;
}

/// Elements of a (k, columns) matrix as panels; the last panel is padded with zeros.
template <class T>
std::int64_t panel_elements(std::int64_t k, std::int64_t columns) {
  return panel_count<T>(columns) * panel_step<T>(k);
}

/// The matrix to pack: row (a, b, i), columns j, from data[start + a row_step + b column_tap_step + i inner_step + j column_step]. A plain
/// matrix has one tap, a = b = 0; a convolution's weights have one per kernel position. With inner_block, which divides inner, the order
/// of rows is (i / inner_block, a, b, i % inner_block).
template <class T>
struct PanelSource {
  const T* data = nullptr;
  std::int64_t taps_high = 1, taps_wide = 1;
  std::int64_t tap_step_high = 0, tap_step_wide = 0;
  std::int64_t inner = 0, inner_step = 0;
  std::int64_t inner_block = 0;  ///< 0: inner; a matrix with one tap has none
  std::int64_t columns = 0, column_step = 0;

  std::int64_t k() const { return taps_high * taps_wide * inner; }
};

/// Packs the panel of index `panel`, at out_panels + panel panel_step(k()), element by element.
template <class T>
void pack_panel_by_elements(const PanelSource<T>& from, std::int64_t panel, T* out_panels) {
  constexpr std::int64_t width = panel_width<T>, group = PanelLayout<T>::group;
  const std::int64_t size = panel_step<T>(from.k());
  T* const out = out_panels + panel * size;
  const std::int64_t first = panel * width;
  const std::int64_t n = std::min(width, from.columns - first);
  if (n < width || from.k() % PanelLayout<T>::k_multiple != 0) std::fill_n(out, size, T{});
  const std::int64_t block = from.inner_block == 0 ? from.inner : from.inner_block, taps = from.taps_high * from.taps_wide;
  // The inner index is outermost, so that reads are sequential and each line is written whole.
  for (std::int64_t i = 0; i < from.inner; ++i) {
    for (std::int64_t a = 0; a < from.taps_high; ++a) {
      for (std::int64_t b = 0; b < from.taps_wide; ++b) {
        const T* const source =
            from.data + a * from.tap_step_high + b * from.tap_step_wide + i * from.inner_step + first * from.column_step;
        const std::int64_t k = (i / block * taps + a * from.taps_wide + b) * block + i % block;
        T* const line = out + k / group * (width * group) + k % group;
        for (std::int64_t j = 0; j < n; ++j) line[j * group] = source[j * from.column_step];
      }
    }
  }
}

/// Packs the panel of index `panel` as pack_panel_by_elements does, faster where rows or columns are contiguous.
template <class T>
void pack_panel(const PanelSource<T>& from, std::int64_t panel, T* out_panels);
template <>
void pack_panel(const PanelSource<sdk::BFloat16>& from, std::int64_t panel, sdk::BFloat16* out_panels);

/// The largest k of products with PanelProduct::a_offsets.
inline constexpr std::int64_t max_indirect_k = 512;

/// y = activation(alpha a b + bias + beta residual), with a (rows, k), b packed, y (rows, columns). Of bf16, sums and what is added to them
/// are f32, rounded once.
template <class T>
struct PanelProduct {
  std::int64_t rows = 0, k = 0, columns = 0;
  const T* a = nullptr;
  std::int64_t a_step = 0;
  std::int64_t a_inner_step = 1;             ///< from column to column of a; other than 1 only of products of f32 and f64
  const std::int32_t* a_offsets = nullptr;   ///< of f32, k <= max_indirect_k: element p of row r is a[r a_step + a_offsets[p]]; of bf16,
                                             ///< with bf16_takes_offsets: a[r a_step + a_offsets[p / 32] + p % 32], k % 32 = 0
  const T* panels = nullptr;                 ///< of b; NULL: `unpacked` is packed as it is used
  const PanelSource<T>* unpacked = nullptr;  ///< b with one tap, only of products of f32 and f64
  const T* next_panels = nullptr;            ///< a panel that is used next, or, of f32 and f64, as many as these; or NULL
  bool fetches_next_columns = false;         ///< `unpacked`, one panel, is followed by columns that are used next
  T* y = nullptr;
  std::int64_t y_step = 0;
  const std::int64_t* y_offsets = nullptr;  ///< the offset of each row of y; NULL: i y_step. Of bf16, -1: not stored
  const T* bias = nullptr;                  ///< (columns)
  const T* residual = nullptr;              ///< has the layout of y and may be y: each element is read before it is written
  const T* relu_result = nullptr;           ///< as of sdk::Epilogue, only of products of f32 and f64; has the layout of y
  float alpha = 1, beta = 1;                ///< only products of bf16 take others than 1
  float* wide_y = nullptr;                  ///< results in f32 instead of y, only of products of bf16, without activation; or NULL
  bool accumulates = false;                 ///< wide_y is added to
  bool streams = false;                     ///< of bf16: the panels are read once, from memory: in the order of their addresses
  sdk::Activation activation = {};
  bool wide_last_panel = false;  ///< y has memory for whole panels
};

/// Runs on the calling thread. Each element is one chain of fused multiply-adds from k = 0 on, so its bits do not depend on the tiling. In
/// bf16 (bf16_panels.cpp) the order of additions depends on k and the processor, and on nothing else.
template <class T>
void multiply_panels(const PanelProduct<T>& product);
template <>
void multiply_panels(const PanelProduct<sdk::BFloat16>& product);

/// Whether products of bf16 take a_offsets by the instructions of `set`.
bool bf16_takes_offsets(InstructionSet set);

}  // namespace tenon::openblas
