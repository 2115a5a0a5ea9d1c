// SPDX-License-Identifier: Apache-2.0
// image.cuh - images of either layout as one shape, sliding windows, and the mapping of threads to elements.
#pragma once

#include <cstdint>
#include <limits>

#include "kernel/divisor.h"
#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"

namespace tenon::cuda {

/// x (N, C, H, W) is (N C, H, W, 1) where channels come first, (N, H, W, C) where they come last; a signal is an image of one row. In both,
/// the index of an element in (N, C, H, W) is (outer inner + i) rows columns + its offset in the plane.
struct ImageShape {
  std::int64_t outer = 1, rows = 1, columns = 1, inner = 1;

  ImageShape() = default;
  ImageShape(const sdk::Operand& x, bool channels_last) {
    const std::uint32_t first = channels_last ? 1 : 2, dims = x.rank - 2;
    outer = channels_last ? x.shape[0] : x.shape[0] * x.shape[1];
    inner = channels_last ? x.shape[x.rank - 1] : 1;
    if (dims == 2) rows = x.shape[first];
    columns = x.shape[first + dims - 1];
  }
  std::int64_t plane() const { return rows * columns; }
};

/// The largest numbers of 32-bit index arithmetic: the sum of two of them fits.
inline constexpr std::int64_t max_small = std::numeric_limits<std::int32_t>::max() / 2;

/// Packs of V elements of an image, indexed in memory order. Index is a signed type, of 32 bits only if the count is at most max_small.
struct Packs {
  template <class Index>
  struct PlaceOf {
    Index outer, row, column, inner;  ///< inner: the pack's first element
  };
  using Place = PlaceOf<std::int64_t>;
  std::int64_t count = 0;
  std::int64_t rows = 1, columns = 1, per_pixel = 1;
  int width = 1;
  Divisor by_rows, by_columns, by_pixel;

  Packs(const ImageShape& x, int v)
      : count(x.outer * x.rows * x.columns * (x.inner / v)),
        rows(x.rows),
        columns(x.columns),
        per_pixel(x.inner / v),
        width(v),
        by_rows(rows),
        by_columns(columns),
        by_pixel(per_pixel) {}
  template <class Index>
  __device__ PlaceOf<Index> operator[](Index i) const {
    const Index pixel = by_pixel.quotient(i), row = by_columns.quotient(pixel), outer = by_rows.quotient(row);
    return {outer, row - outer * static_cast<Index>(rows), pixel - row * static_cast<Index>(columns),
            (i - pixel * static_cast<Index>(per_pixel)) * width};
  }
};

/// `count` indices along a dimension, from `first` on.
template <class Index>
struct RangeOf {
  Index first, count;
};
using Range = RangeOf<std::int64_t>;

/// One spatial dimension: `windows` windows over `size` elements.
struct WindowAxis {
  std::int64_t size = 1, windows = 1, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
  Divisor by_stride, by_dilation;

  WindowAxis() = default;
  WindowAxis(std::int64_t elements, std::int64_t count, const tenon_attributes_window& a, std::uint32_t i)
      : size(elements),
        windows(count),
        kernel(a.kernel[i]),
        stride(a.strides[i]),
        dilation(a.dilations[i]),
        before(a.pads_before[i]),
        after(a.pads_after[i]),
        by_stride(stride),
        by_dilation(dilation) {}

  /// Whether all that start and taps compute fits in 32 bits.
  bool is_small() const {
    constexpr std::int64_t limit = max_small / 2;
    return size <= limit && before <= limit && stride <= limit && windows <= limit / stride && dilation <= limit &&
           kernel <= limit / dilation;
  }
  template <class Index>
  __device__ Index start(Index window) const {
    return window * static_cast<Index>(stride) - static_cast<Index>(before);
  }
  /// The elements of a window that are inside the image, `dilation` apart.
  template <class Index>
  __device__ RangeOf<Index> taps(Index window) const {
    const auto all = static_cast<Index>(size), count = static_cast<Index>(kernel), step = static_cast<Index>(dilation);
    const Index begin = start(window);
    if (begin >= 0 && begin + (count - 1) * step < all) return {begin, count};
    const Index skipped = begin < 0 ? by_dilation.quotient(-begin + step - 1) : 0;
    Index end = begin < all ? by_dilation.quotient(all - begin + step - 1) : 0;
    if (end > count) end = count;
    return {begin + skipped * step, end > skipped ? end - skipped : 0};
  }
  /// The windows that contain an element, for dilation 1.
  __device__ Range seen_by(std::int64_t element) const {
    const std::int64_t offset = element + before;  // relative to the start of the first window
    const std::int64_t first = offset < kernel ? 0 : by_stride.quotient(offset - kernel) + 1;
    std::int64_t last = by_stride.quotient(offset);
    if (last >= windows) last = windows - 1;
    return {first, last >= first ? last - first + 1 : 0};
  }
  /// The divisor of a mean: the elements inside the image, or the padded image, for dilation 1.
  __device__ std::int64_t divisor(std::int64_t window, bool padded) const {
    std::int64_t begin = start(window), end = begin + kernel;
    const std::int64_t bound = padded ? size + after : size;
    if (end > bound) end = bound;
    if (begin < 0 && !padded) begin = 0;
    return end - begin;
  }
};

/// A row-major loop over rows and columns of a plane. It stays at the last element.
template <class Index>
struct PlaneLoopOf {
  Index count, place;
  Index row = 0, column = 0;  ///< iterations done
  Index columns, column_step, line_end;

  __device__ PlaneLoopOf(RangeOf<Index> down, RangeOf<Index> across, std::int64_t row_dilation, std::int64_t column_dilation,
                         std::int64_t width)
      : count(down.count * across.count),
        place(down.first * static_cast<Index>(width) + across.first),
        columns(across.count),
        column_step(static_cast<Index>(column_dilation)),
        line_end(static_cast<Index>(row_dilation * width) - (across.count - 1) * column_step) {}
  __device__ void advance() {
    if (column + 1 < columns) {
      ++column;
      place += column_step;
    } else if ((row + 1) * columns < count) {
      ++row;
      column = 0;
      place += line_end;
    }
  }
};
using PlaneLoop = PlaneLoopOf<std::int64_t>;

/// sums[v] += weight(loop) x for the packs of a loop's elements, which are `inner` apart, in order. A batch of packs is loaded before any
/// of it is used; past the end, the last pack is loaded again.
template <int V, class T, class Weight>
__device__ void add_weighted(PlaneLoop loop, const T* x, std::int64_t inner, const Weight& weight, Wide<T> (&sums)[V]) {
  constexpr int batch = 4;
  for (std::int64_t t = 0; t < loop.count; t += batch) {
    Pack<T, V> packs[batch];
    Wide<T> weights[batch];
#pragma unroll
    for (int u = 0; u < batch; ++u) {
      packs[u] = pack_at<V>(x + loop.place * inner);
      weights[u] = weight(loop);
      loop.advance();
    }
#pragma unroll
    for (int u = 0; u < batch; ++u) {
      if (t + u >= loop.count) break;
#pragma unroll
      for (int v = 0; v < V; ++v) sums[v] += widen(packs[u].at[v]) * weights[u];
    }
  }
}

}  // namespace tenon::cuda
