// SPDX-License-Identifier: Apache-2.0
// pool_geometry.h - windows over channels-last images, and a loop over the rows of their results.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// The elements of a window that lie in the image: `count` of them from `first` on, at steps of the dilation.
struct PoolTaps {
  std::int64_t first, count;
};

/// One spatial dimension: `windows` windows over `size` elements.
struct PoolAxis {
  std::int64_t size = 1, windows = 1, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;

  std::int64_t start(std::int64_t window) const { return window * stride - before; }
  PoolTaps taps(std::int64_t window) const {
    const std::int64_t begin = start(window);
    if (begin >= 0 && begin + (kernel - 1) * dilation < size) return {begin, kernel};
    const std::int64_t skipped = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
    const std::int64_t end = begin < size ? std::min(kernel, (size - begin + dilation - 1) / dilation) : 0;
    return {begin + skipped * dilation, std::max<std::int64_t>(end - skipped, 0)};
  }
  /// The divisor of a mean: the number of the window's elements in the image, or in the padded image.
  std::int64_t divisor(std::int64_t window, bool padded) const {
    return padded ? std::min(start(window) + kernel, size + after) - start(window) : taps(window).count;
  }
};

/// x (images, h.size, w.size, channels) and y (images, h.windows, w.windows, channels). A signal (N, L, C) is an image of height 1.
struct PoolGeometry {
  std::int64_t images, channels;
  PoolAxis h, w;

  PoolGeometry(const sdk::Operand& x, const sdk::Operand& y, const tenon_attributes_window& a)
      : images(x.shape[0]), channels(x.shape[x.rank - 1]) {
    const std::uint32_t dims = x.rank - 2;
    for (std::uint32_t i = 0; i < dims; ++i) {
      PoolAxis& axis = i + 1 == dims ? w : h;
      axis = {x.shape[i + 1], y.shape[i + 1], a.kernel[i], a.strides[i], a.dilations[i], a.pads_before[i], a.pads_after[i]};
    }
  }
  std::int64_t pixels() const { return h.size * w.size; }
};

/// Elements worth a thread of their own: about 20 us.
inline constexpr std::int64_t pool_grain = 64 * 1024;

/// Calls body(image, row) for every row of each image, shared among threads; a row processes `elements` elements.
template <class Body>
void for_each_pool_row(const sdk::Host& host, std::int64_t images, std::int64_t rows, std::int64_t elements, const Body& body) {
  host.parallel_for(images * rows, std::max<std::int64_t>(1, pool_grain / std::max<std::int64_t>(elements, 1)),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) body(i / rows, i % rows);
                    });
}

}  // namespace tenon::openblas
