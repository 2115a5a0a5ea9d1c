// SPDX-License-Identifier: Apache-2.0
// panels.h - products with a matrix that was packed ahead of time, by this backend's own register tiles. OpenBLAS packs both operands at
// every call, which constant weights do not need and a convolution with few rows does not amortise: docs/adr/0012 has the figures.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// Columns of a panel: 128 bytes for every instruction set, so that packed weights do not depend on it.
template <class T>
inline constexpr std::int64_t panel_width = 128 / static_cast<std::int64_t>(sizeof(T));

template <class T>
std::int64_t panel_count(std::int64_t columns) {
  return (columns + panel_width<T> - 1) / panel_width<T>;
}

/// Elements of a (k, columns) matrix as panels; the last panel is padded with zeros.
template <class T>
std::int64_t panel_elements(std::int64_t k, std::int64_t columns) {
  return k * panel_count<T>(columns) * panel_width<T>;
}

/// The matrix to pack: row (a, b, i), columns j, from data[start + a row_step + b column_tap_step + i inner_step + j column_step]. A plain
/// matrix has one tap, a = b = 0; a convolution's weights have one per kernel position.
template <class T>
struct PanelSource {
  const T* data = nullptr;
  std::int64_t taps_high = 1, taps_wide = 1;
  std::int64_t tap_step_high = 0, tap_step_wide = 0;
  std::int64_t inner = 0, inner_step = 0;
  std::int64_t columns = 0, column_step = 0;

  std::int64_t k() const { return taps_high * taps_wide * inner; }
};

/// Packs the panel of index `panel`: k() lines of panel_width elements, at out_panels + panel k() panel_width.
template <class T>
void pack_panel(const PanelSource<T>& from, std::int64_t panel, T* out_panels) {
  constexpr std::int64_t width = panel_width<T>;
  T* const out = out_panels + panel * from.k() * width;
  const std::int64_t first = panel * width;
  const std::int64_t n = std::min(width, from.columns - first);
  // The inner index is outermost, so that reads are sequential and each line is written whole.
  for (std::int64_t i = 0; i < from.inner; ++i) {
    for (std::int64_t a = 0; a < from.taps_high; ++a) {
      for (std::int64_t b = 0; b < from.taps_wide; ++b) {
        const T* const source =
            from.data + a * from.tap_step_high + b * from.tap_step_wide + i * from.inner_step + first * from.column_step;
        T* const line = out + ((a * from.taps_wide + b) * from.inner + i) * width;
        for (std::int64_t j = 0; j < n; ++j) line[j] = source[j * from.column_step];
        std::fill(line + n, line + width, T(0));
      }
    }
  }
}

/// y = activation(a b + bias + residual), with a (rows, k), b packed, y (rows, columns).
template <class T>
struct PanelProduct {
  std::int64_t rows = 0, k = 0, columns = 0;
  const T* a = nullptr;
  std::int64_t a_step = 0;
  const T* panels = nullptr;
  T* y = nullptr;
  std::int64_t y_step = 0;
  const std::int64_t* y_offsets = nullptr;  ///< the offset of each row of y; NULL: i y_step
  const T* bias = nullptr;                  ///< (columns)
  const T* residual = nullptr;              ///< has the layout of y and may be y: each element is read before it is written
  sdk::Activation activation = sdk::Activation::none;
  bool wide_last_panel = false;  ///< y has memory for whole panels
};

/// Runs on the calling thread. Each element is one chain of fused multiply-adds from k = 0 on, so its bits do not depend on the tiling.
template <class T>
void multiply_panels(const PanelProduct<T>& product);

}  // namespace tenon::openblas
