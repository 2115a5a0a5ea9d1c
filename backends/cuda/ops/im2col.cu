// SPDX-License-Identifier: Apache-2.0
// Sliding windows as columns, and the inverse accumulation: each element is written by one thread. Images have channels first.
#include "kernel/image.cuh"
#include "kernel/pack.cuh"
#include "movement/movable.h"

namespace tenon::cuda {
namespace {

/// An image's planes and the windows over them.
struct Columns {
  std::int64_t planes;
  WindowAxis rows, columns;

  Columns(const tenon_attributes_window& a, const sdk::Operand& image) : planes(image.shape[0] * image.shape[1]) {
    const std::uint32_t last = image.rank - 3;
    if (last == 1) rows = axis(a, image, 0);
    columns = axis(a, image, last);
  }
  static WindowAxis axis(const tenon_attributes_window& a, const sdk::Operand& image, std::uint32_t i) {
    const std::int64_t size = image.shape[i + 2];
    const std::int64_t span = size + a.pads_before[i] + a.pads_after[i] - a.dilations[i] * (a.kernel[i] - 1) - 1;
    return {size, span / a.strides[i] + 1, a, i};
  }
  std::int64_t taps() const { return rows.kernel * columns.kernel; }
  std::int64_t windows() const { return rows.windows * columns.windows; }
};

/// The coordinates of an element of the columns, indexed (plane, tap, window).
struct ColumnPlaces {
  Divisor windows, across, taps, kernel;

  explicit ColumnPlaces(const Columns& c) : windows(c.windows()), across(c.columns.windows), taps(c.taps()), kernel(c.columns.kernel) {}
};

/// Stores V neighbours of one tap at once.
template <class T, int V>
__global__ void unfold(Columns c, ColumnPlaces places, std::int64_t packs, const T* x, T* y) {
  for (std::int64_t p = thread_index(); p < packs; p += thread_count()) {
    const std::int64_t line = places.windows.quotient(p * V), window = p * V - line * places.windows.d;
    const std::int64_t plane = places.taps.quotient(line), tap = line - plane * places.taps.d;
    const std::int64_t tap_row = places.kernel.quotient(tap), tap_column = tap - tap_row * places.kernel.d;
    std::int64_t row = places.across.quotient(window), column = window - row * places.across.d;
    const T* const from = x + plane * c.rows.size * c.columns.size;
    Pack<T, V> result;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const std::int64_t i = c.rows.start(row) + tap_row * c.rows.dilation, k = c.columns.start(column) + tap_column * c.columns.dilation;
      result.at[v] = i >= 0 && i < c.rows.size && k >= 0 && k < c.columns.size ? from[i * c.columns.size + k] : T(0);
      if (++column == c.columns.windows) {
        column = 0;
        ++row;
      }
    }
    store_pack<V>(y + p * V, result);
  }
}

/// y[n, (c, k...), (i...)] = x[n, c, i strides + k dilations - pads_before], zeros outside of x
///
/// Shapes  x (N, C, d...), y (N, C * product of kernel, windows); dense.
template <class T>
void im2col(const sdk::Call& call) {
  using Bits = BitsOf<T>;
  if (call.outputs[0].count == 0) return;
  const Columns c(call.attr<tenon_attributes_window>(), call.inputs[0]);
  Bits* const y = call.output<Bits>(0);
  const bool packs = fits_packs<Bits>(c.windows(), y);
  const std::int64_t count = call.outputs[0].count / (packs ? pack_width<Bits> : 1);
  launch_over(call, count, packs ? unfold<Bits, pack_width<Bits>> : unfold<Bits, 1>, c, ColumnPlaces(c), count, call.input<Bits>(0), y);
}

/// The window that starts at `offset`; -1: none.
__device__ std::int64_t window_from(const WindowAxis& axis, std::int64_t offset) {
  if (offset < 0) return -1;
  const std::int64_t window = axis.by_stride.quotient(offset);
  return window < axis.windows && window * axis.stride == offset ? window : -1;
}

template <class T>
__global__ void fold(Columns c, Packs elements, const T* x, T* y) {
  const std::int64_t windows = c.rows.windows * c.columns.windows;
  for (std::int64_t e = thread_index(); e < elements.count; e += thread_count()) {
    const Packs::Place at = elements[e];
    const T* from = x + at.outer * c.rows.kernel * c.columns.kernel * windows;
    Wide<T> sum = 0;
    for (std::int64_t i = 0; i < c.rows.kernel; ++i, from += c.columns.kernel * windows) {
      const std::int64_t row = window_from(c.rows, at.row + c.rows.before - i * c.rows.dilation);
      if (row < 0) continue;
      const T* const line = from + row * c.columns.windows;
      for (std::int64_t k = 0; k < c.columns.kernel; ++k) {
        const std::int64_t column = window_from(c.columns, at.column + c.columns.before - k * c.columns.dilation);
        if (column >= 0) sum += widen(line[k * windows + column]);
      }
    }
    y[e] = narrow<T>(sum);
  }
}

/// y[n, c, i strides + k dilations - pads_before] += x[n, (c, k...), (i...)], by taps; terms outside of y are dropped
///
/// Shapes  x (N, C * product of kernel, windows), y (N, C, d...); dense.
/// Dtypes  integers wrap.
template <class T>
void col2im(const sdk::Call& call) {
  const Columns c(call.attr<tenon_attributes_window>(), call.outputs[0]);
  const Packs elements(ImageShape(call.outputs[0], false), 1);
  launch_over(call, elements.count, fold<T>, c, elements, call.input<T>(0), call.output<T>(0));
}

}  // namespace
TENON_KERNEL(im2col, sdk::Half, sdk::BFloat16, float, double, std::int32_t, std::int64_t)
TENON_KERNEL(col2im, sdk::Half, sdk::BFloat16, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::cuda
