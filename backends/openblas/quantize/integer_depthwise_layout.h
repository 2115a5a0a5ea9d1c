// SPDX-License-Identifier: Apache-2.0
// integer_depthwise_layout.h - the packed weights of depthwise convolutions of 8-bit integers, and the pixels that they meet.
#pragma once

#include <cstdint>

#include <tenon/sdk/rounding.h>

#include "conv/conv_geometry.h"
#include "quantize/integer_tiles.h"

namespace tenon::openblas {

// The packed weights have three parts. The first is (taps, channels) in i16, for any processor and any zero points. The second is for
// vpdpbusd: per 64 channels, a chunk, and for each line of the kernel, groups of four taps, of which the last has zeros. Four vectors of 16
// channels are a group; the channels of a vector are those that unpacking bytes within lanes of 128 bits gives. A kernel of up to 3 columns
// is stored a second time, one column further right: the pixels of one group of taps then give the sums of two neighbouring pixels of y.
// The third has the sums of the weights of each channel.
inline constexpr std::int64_t chunk_channels = 64, group_bytes = integer_group * chunk_channels;

inline std::int64_t chunks_of(const ConvGeometry& g) {
  return sdk::ceil_div(g.channels, chunk_channels);
}
inline std::int64_t line_groups(const ConvGeometry& g) {
  return sdk::ceil_div(g.kernel_width, integer_group);
}
/// Bytes of one chunk, once.
inline std::int64_t chunk_bytes(const ConvGeometry& g) {
  return g.kernel_height * line_groups(g) * group_bytes;
}
inline std::int64_t first_part_bytes(const ConvGeometry& g) {
  return sdk::round_up(g.weights() * static_cast<std::int64_t>(sizeof(std::int16_t)), 64);
}

/// Where the sums of the weights of each channel follow, in i32.
inline std::int64_t sums_offset(const ConvGeometry& g) {
  const std::int64_t copies = g.kernel_width < integer_group ? 2 : 1;
  return sdk::round_up(first_part_bytes(g) + copies * chunks_of(g) * chunk_bytes(g), 64);
}

/// Images of at most this number of channels have two pixels in a chunk: its second half repeats the channels of the first.
inline constexpr std::int64_t narrow_channels = 32;

/// The channel in element i of the four vectors of a chunk: lane l of vector v has channels 16 l + 4 v to 16 l + 4 v + 3.
inline std::int64_t channel_at(const ConvGeometry& g, std::int64_t i) {
  const std::int64_t v = i / 16, lane = i / 4 % 4;
  const std::int64_t channel = 16 * lane + 4 * v + i % 4;
  return g.channels <= narrow_channels ? channel % narrow_channels : channel;
}

/// What a line of y is made of.
struct DepthwiseLine {
  const ConvGeometry& g;
  const std::uint8_t* x;
  const std::uint8_t* padding;  ///< zero points of all channels
  std::int64_t image, line;     ///< of y

  /// The pixel of x that tap (a, b) of the kernel meets for this column of y.
  const std::uint8_t* pixel(std::int64_t column, std::int64_t a, std::int64_t b) const {
    const std::int64_t high = line * g.stride_height - g.pad_top + a * g.dilation_height;
    const std::int64_t wide = column * g.stride_width - g.pad_left + b * g.dilation_width;
    if (high < 0 || high >= g.height || wide < 0 || wide >= g.width) return padding;
    return x + ((image * g.height + high) * g.width + wide) * g.channels;
  }
};

}  // namespace tenon::openblas
