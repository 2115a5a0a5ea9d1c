// SPDX-License-Identifier: Apache-2.0
// conv_direct.h - any convolution as products of its weights with rows gathered from the image, a block of pixels at a time (implicit
// im2col). The input gradient is a convolution with the weights rotated by 180 degrees, one for each remainder of a pixel by the strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <tenon/sdk/kernel.h>

#include "conv/conv_geometry.h"
#include "gemm/panels.h"

namespace tenon::openblas {

/// One spatial dimension. Result i of `results` is at first + i step and sums, over taps t, the elements at i read_step + offset + t
/// tap_step, which are zero outside of [0, size).
struct ConvAxis {
  std::int64_t results = 0, first = 0, step = 1;
  std::int64_t size = 0, read_step = 1, offset = 0;
  std::int64_t taps = 0, tap_step = 1;
};

/// y = epilogue(sum over taps and channels of x w), group by group.
struct DirectConv {
  std::int64_t images = 0, groups = 1;
  ConvAxis high, wide;
  std::int64_t channels = 0;                                     ///< of x (images, high.size, wide.size, channels)
  std::int64_t out_height = 0, out_width = 0, out_channels = 0;  ///< of the whole y
  bool scales = false;                                           ///< x is multiplied by DirectOperands::scale; only if reads_pixels()

  std::int64_t rows() const { return images * high.results * wide.results; }
  std::int64_t k() const { return high.taps * wide.taps * (channels / groups); }
  std::int64_t group_columns() const { return out_channels / groups; }
};

template <class T>
struct DirectOperands {
  const T* x = nullptr;
  const T* panels = nullptr;  ///< of all groups, consecutively
  T* y = nullptr;
  const T* bias = nullptr;
  const T* residual = nullptr;
  sdk::Activation activation = {};
  const T* scale = nullptr;  ///< (images, channels): a factor of the pixels of each image
};

/// Whether rows of the im2col matrix are pixels of the image in their order: 1x1, without strides, padding and groups.
bool reads_pixels(const DirectConv& conv);

/// Elements of the packed weights of a convolution, all groups.
template <class T>
std::int64_t direct_panel_elements(const DirectConv& conv) {
  return conv.groups * panel_elements<T>(conv.k(), conv.group_columns());
}

std::size_t direct_scratch(const DirectConv& conv, const sdk::Host& host, std::size_t element_size);

/// Instantiated for bf16, float and double.
template <class T>
void direct_conv(const DirectConv& conv, const DirectOperands<T>& operands, const sdk::Host& host, void* scratch);

}  // namespace tenon::openblas
