// SPDX-License-Identifier: Apache-2.0
// ops/im2col.cpp - sliding windows as columns, and the transpose, which sums columns into the image. Images are channels first.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "elementwise/strided_copy.h"

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own.
constexpr std::int64_t grain = 32 * 1024;

/// One dimension of the image, and the windows along it.
struct Axis {
  std::int64_t size = 1;
  std::int64_t windows = 1;
  std::int64_t kernel = 1, stride = 1, dilation = 1, pad = 0;

  Axis() = default;
  Axis(const tenon_attributes_window& a, std::uint32_t i, std::int64_t n)
      : size(n), kernel(a.kernel[i]), stride(a.strides[i]), dilation(a.dilations[i]), pad(a.pads_before[i]) {
    windows = (n + pad + a.pads_after[i] - dilation * (kernel - 1) - 1) / stride + 1;
  }

  /// The position of a tap of window w, which may be outside of the image.
  std::int64_t place(std::int64_t w, std::int64_t tap) const { return w * stride + tap * dilation - pad; }
  /// The tap is inside the image for windows [first, second).
  std::pair<std::int64_t, std::int64_t> inside(std::int64_t tap) const {
    const std::int64_t start = place(0, tap);
    const std::int64_t first = start >= 0 ? 0 : std::min(windows, (-start + stride - 1) / stride);
    const std::int64_t last = start >= size ? 0 : std::min(windows, (size - start + stride - 1) / stride);
    return {first, std::max(first, last)};
  }
};

/// The image's planes and their columns.
struct Columns {
  Axis rows, columns;
  std::int64_t planes;  ///< images times channels

  Columns(const tenon_attributes_window& attributes, const sdk::Operand& image) : planes(image.shape[0] * image.shape[1]) {
    const std::uint32_t last = image.rank - 3;
    if (last == 1) rows = Axis(attributes, 0, image.shape[2]);
    columns = Axis(attributes, last, image.shape[image.rank - 1]);
  }

  std::int64_t taps() const { return rows.kernel * columns.kernel; }
  std::int64_t windows() const { return rows.windows * columns.windows; }
  std::int64_t pixels() const { return rows.size * columns.size; }
};

/// Writes the elements at one tap of all windows.
template <class Word>
void unfold(const Columns& c, std::int64_t tap, const Word* plane, Word* y) {
  const std::int64_t across = tap % c.columns.kernel;
  const auto [first, last] = c.columns.inside(across);
  for (std::int64_t row = 0; row < c.rows.windows; ++row, y += c.columns.windows) {
    const std::int64_t place = c.rows.place(row, tap / c.columns.kernel);
    if (place < 0 || place >= c.rows.size) {
      std::fill_n(y, c.columns.windows, Word(0));
      continue;
    }
    std::fill(y, y + first, Word(0));
    if (last > first) {
      const Word* const from = plane + place * c.columns.size + c.columns.place(first, across);
      if (c.columns.stride == 1) {
        std::copy_n(from, last - first, y + first);
      } else {
        for (std::int64_t w = first; w < last; ++w) y[w] = from[(w - first) * c.columns.stride];
      }
    }
    std::fill(y + last, y + c.columns.windows, Word(0));
  }
}

/// y[n, (c, k...), (i...)] = x[n, c, i strides + k dilations - pads_before], zeros outside of x
template <class T>
void im2col(const sdk::Call& call) {
  using Word = WordOf<T>;
  if (call.outputs[0].count == 0) return;
  const Columns c(call.attr<tenon_attributes_window>(), call.inputs[0]);
  const Word* const x = call.input<Word>(0);
  Word* const y = call.output<Word>(0);
  call.host.parallel_for(c.planes * c.taps(), std::max<std::int64_t>(1, grain / c.windows()), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) unfold(c, i % c.taps(), x + i / c.taps() * c.pixels(), y + i * c.windows());
  });
}

/// Adds the elements at one tap of all windows to a plane.
template <class Sum>
void fold(const Columns& c, std::int64_t tap, const Sum* x, Sum* plane) {
  const std::int64_t across = tap % c.columns.kernel;
  const auto [first, last] = c.columns.inside(across);
  if (last <= first) return;
  for (std::int64_t row = 0; row < c.rows.windows; ++row) {
    const std::int64_t place = c.rows.place(row, tap / c.columns.kernel);
    if (place < 0 || place >= c.rows.size) continue;
    const Sum* const from = x + row * c.columns.windows + first;
    Sum* const to = plane + place * c.columns.size + c.columns.place(first, across);
    const std::int64_t n = last - first;
    if (c.columns.stride == 1) {
      for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i * c.columns.stride] += from[i];
    }
  }
}

/// y[n, c, i strides + k dilations - pads_before] += x[n, (c, k...), (i...)]; elements outside of y are dropped. Integers wrap.
template <class T>
void col2im(const sdk::Call& call) {
  using Sum = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  if (call.outputs[0].count == 0) return;
  const Columns c(call.attr<tenon_attributes_window>(), call.outputs[0]);
  const Sum* const x = call.input<Sum>(0);
  Sum* const y = call.output<Sum>(0);
  const std::int64_t work = c.pixels() + c.taps() * c.windows();
  call.host.parallel_for(c.planes, std::max<std::int64_t>(1, grain / work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      Sum* const plane = y + i * c.pixels();
      std::fill_n(plane, c.pixels(), Sum(0));
      for (std::int64_t tap = 0; tap < c.taps(); ++tap) fold(c, tap, x + (i * c.taps() + tap) * c.windows(), plane);
    }
  });
}

}  // namespace

TENON_KERNEL(im2col, sdk::Half, sdk::BFloat16, float, double, std::int32_t, std::int64_t)
TENON_KERNEL(col2im, float, double, std::int32_t, std::int64_t)

}  // namespace tenon::openblas
