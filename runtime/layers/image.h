// SPDX-License-Identifier: Apache-2.0
// layers/image.h - what layers of images (batch, channels, d...) have among them: sizes for each spatial dimension, and padding.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <tenon/functions.h>
#include <tenon/layers.h>

#include "layers/builder.h"
#include "layers/keys.h"

namespace tenon::layers {

/// Reads one number for all dimensions, or one for each.
Sizes read_sizes(LayerKeys& keys, const char* key, std::size_t dims);
/// The same; null and an absent key give the default.
Sizes read_sizes(LayerKeys& keys, const char* key, std::size_t dims, const Sizes& default_sizes, std::int64_t lowest = 1);
/// Reads `padding`: "same", "valid", one number for all sides, one for each dimension, or one for each side.
Padding read_padding(LayerKeys& keys, std::size_t dims);

/// Checks that x has `dims` spatial dimensions behind its channels. An image of height 1 is also accepted as a signal.
void expect_image(LayerBuilder& builder, const Shape& shape, std::size_t dims);
/// One size for each dimension; none if there are none.
std::vector<std::int64_t> sizes_of(LayerBuilder& builder, const Sizes& sizes, std::size_t dims);
/// The same for a kernel or window, which has a size.
std::vector<std::int64_t> kernel_of(LayerBuilder& builder, const Sizes& sizes, std::size_t dims);
/// The strides and padding of a layer.
template <class Options, class L>
Options options_of(LayerBuilder& builder, const L& layer, std::size_t dims) {
  Options options;
  options.strides = sizes_of(builder, layer.strides, dims);
  options.padding = layer.padding.sides;
  if (options.padding.size() == 1) options.padding.resize(dims, options.padding[0]);
  options.same = layer.padding.fits_stride;
  if constexpr (requires { layer.dilation; }) options.dilations = sizes_of(builder, layer.dilation, dims);
  if constexpr (requires { layer.ceil_mode; }) options.ceil_mode = layer.ceil_mode;
  return options;
}

}  // namespace tenon::layers
