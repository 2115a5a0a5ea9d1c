// SPDX-License-Identifier: Apache-2.0
// conv_geometry.h - the sizes of a convolution of channels-last images, shared by all algorithms.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/rounding.h>

namespace tenon::openblas {

/// y[n, oh, ow, o] = sum over kh, kw, c of x[n, oh sh + kh dh - ph, ow sw + kw dw - pw, c] w[o, c, kh, kw], group by group. The gradients
/// use the same names for x, w and y. A signal (N, L, C) is an image of height 1.
struct ConvGeometry {
  std::int64_t images = 0;                                       ///< N
  std::int64_t height = 0, width = 0, channels = 0;              ///< of x (N, height, width, channels)
  std::int64_t out_height = 0, out_width = 0, out_channels = 0;  ///< of y (N, out_height, out_width, out_channels)
  std::int64_t groups = 1;                                       ///< divides channels and out_channels
  std::int64_t kernel_height = 1, kernel_width = 1;              ///< of w (out_channels, channels / groups, kernel_height, kernel_width)
  std::int64_t stride_height = 1, stride_width = 1;
  std::int64_t dilation_height = 1, dilation_width = 1;
  std::int64_t pad_top = 0, pad_left = 0;  ///< the padding at the end follows from the sizes

  std::int64_t group_channels() const { return channels / groups; }
  std::int64_t group_out_channels() const { return out_channels / groups; }
  std::int64_t taps() const { return kernel_height * kernel_width; }
  std::int64_t out_pixels() const { return out_height * out_width; }
  std::int64_t pixels() const { return height * width; }
  /// The im2col matrix of a group, of all images, is (rows, k).
  std::int64_t rows() const { return images * out_pixels(); }
  std::int64_t k() const { return taps() * group_channels(); }
  std::int64_t weights() const { return out_channels * k(); }
  /// Whether each channel is convolved separately (conv_depthwise.h).
  bool depthwise() const { return groups > 1 && groups == channels && groups == out_channels; }
  /// Whether y has no element.
  bool empty() const { return rows() * out_channels == 0; }
};

/// y is channels last, of rank 3 or 4, and x unless stated otherwise; w has the layout of the graph.
inline ConvGeometry conv_geometry(const sdk::Operand& x, const sdk::Operand& w, const sdk::Operand& y,
                                  const tenon_attributes_conv& attributes, bool x_channels_last = true) {
  const bool image = x.rank == 4;
  const std::uint32_t first = x_channels_last ? 1 : 2;  // of the dimensions of an image of x
  ConvGeometry g;
  g.images = x.shape[0];
  g.height = image ? x.shape[first] : 1;
  g.width = x.shape[x.rank - 3 + first];
  g.channels = x.shape[x_channels_last ? x.rank - 1 : 1];
  g.out_height = image ? y.shape[1] : 1;
  g.out_width = y.shape[y.rank - 2];
  g.out_channels = y.shape[y.rank - 1];
  g.groups = attributes.groups;
  g.kernel_height = image ? w.shape[2] : 1;
  g.kernel_width = w.shape[w.rank - 1];
  const int across = image ? 1 : 0;
  g.stride_width = attributes.strides[across];
  g.dilation_width = attributes.dilations[across];
  g.pad_left = attributes.pads_before[across];
  if (image) {
    g.stride_height = attributes.strides[0];
    g.dilation_height = attributes.dilations[0];
    g.pad_top = attributes.pads_before[0];
  }
  return g;
}

/// Bytes of scratch memory, rounded up so that the next buffer is aligned.
inline std::size_t scratch_bytes(std::int64_t elements, std::size_t element_size) {
  return sdk::aligned_size(static_cast<std::size_t>(elements) * element_size);
}

}  // namespace tenon::openblas
