// SPDX-License-Identifier: Apache-2.0
// winograd_geometry.h - a convolution in tiles of one of Winograd's forms: its sizes, and the values and sums of a tile.
#pragma once

#include <cstdint>

namespace tenon::openblas {

/// y[n, i, j, o] = sum over a, b < taps and c of x[n, stride i + a - pad_top, stride j + b - pad_left, c] w(a, b, c, o): a convolution, or
/// the input gradient of one of stride 1.
struct WinogradConv {
  std::int64_t images = 0;
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t out_height = 0, out_width = 0, out_channels = 0;
  std::int64_t pad_top = 0, pad_left = 0;
  std::int64_t taps = 3;     ///< 3 or 5
  std::int64_t stride = 1;   ///< 1 or 2
  std::int64_t results = 0;  ///< of a tile along each dimension: 2, 3, or with 3 taps also 4; 0: the convolution has no form

  /// Pixels of x that a tile reads along each dimension, and as many transformed values.
  std::int64_t reach() const { return stride * (results - 1) + taps; }
  std::int64_t values() const { return reach() * reach(); }
  std::int64_t tile_rows() const { return (out_height + results - 1) / results; }
  std::int64_t tile_columns() const { return (out_width + results - 1) / results; }
  std::int64_t tiles() const { return images * tile_rows() * tile_columns(); }

  /// The sums of a tile along each dimension. Each adds the products of one value, or with strides of two but for the middle one.
  std::int64_t points() const { return stride == 1 ? reach() : 3; }
  std::int64_t first_value(std::int64_t point) const { return stride == 1 ? point : 2 * point - (point > 1 ? 1 : 0); }
  std::int64_t values_of(std::int64_t point) const { return first_value(point + 1) - first_value(point); }
};

/// The most values and taps of a tile of any form.
inline constexpr std::int64_t winograd_max_values = 49, winograd_max_taps = 25;

/// body(value, i, j, part) for each transformed value of a tile, which is that of index `part` of sum (i, j).
template <class Body>
void for_each_winograd_value(const WinogradConv& conv, const Body& body) {
  for (std::int64_t i = 0; i < conv.points(); ++i) {
    for (std::int64_t j = 0; j < conv.points(); ++j) {
      for (std::int64_t part = 0; part < conv.values_of(i) * conv.values_of(j); ++part) {
        const std::int64_t u = conv.first_value(i) + part / conv.values_of(j), v = conv.first_value(j) + part % conv.values_of(j);
        body(u * conv.reach() + v, i, j, part);
      }
    }
  }
}

/// Points to the side x side pixels from (top, left) on of an image (height, width, channels); those outside of it are `zeros`.
template <std::int64_t side, class T>
void find_tile_pixels(const T* image, std::int64_t height, std::int64_t width, std::int64_t channels, std::int64_t top, std::int64_t left,
                      const T* zeros, const T** out_pixels) {
  for (std::int64_t row = top; row < top + side; ++row) {
    for (std::int64_t column = left; column < left + side; ++column) {
      const bool inside = row >= 0 && row < height && column >= 0 && column < width;
      *out_pixels++ = inside ? image + (row * width + column) * channels : zeros;
    }
  }
}

}  // namespace tenon::openblas
