// SPDX-License-Identifier: Apache-2.0
// integer_conv_layout.h - what the products of a convolution of 8-bit integers read, and how they are divided.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/host.h>

#include "conv/conv_geometry.h"
#include "conv/image_bands.h"
#include "quantize/integer_products.h"

namespace tenon::openblas {

/// Where the products of a convolution that is not depthwise find their rows: in memory, gathered or the pixels of the image; in copies of
/// lines of the image; or in bands of it, from which the tile registers read taps.
enum class IntegerRows { memory, lines, bands };
IntegerRows integer_rows(const ConvGeometry& g, const IntegerOperands& at, const sdk::Host& host);

// Elements of a part of a row, for which a_offsets has an element each.
inline constexpr std::int64_t integer_row_part = band_pixel_bytes;

/// The parts of rows that are read from lines of the image, copies of which have the padding, instead of gathering the rows. A line is one
/// of the image with the padding at its sides.
struct IntegerLineParts {
  std::int64_t count = 0, size = 0;  ///< parts of a row, and their bytes; 0: rows are gathered
  std::int64_t filled = 0;           ///< bytes of a part that are not padding, which meets weights of 0
};

/// For convolutions of several taps with lines that tiles divide well. Pixels have a multiple of 64 bytes, or so few that those of a line
/// of taps are one part with little padding, as in the first layer of a net: 21 of 24 bytes for 7 taps of 3 channels. What is packed
/// depends on integer_line_part() only.
IntegerLineParts integer_line_parts(const ConvGeometry& g, const sdk::Host& host);

/// The distance along the packed k of lines of taps that have padding; 0: there is none.
std::int64_t integer_line_part(const ConvGeometry& g, const sdk::Host& host);

/// k as weights are packed: with the padding of lines of taps.
std::int64_t integer_conv_packed_k(const ConvGeometry& g, const sdk::Host& host);

/// Bytes of the packed weights.
std::size_t integer_conv_weight_bytes(const ConvGeometry& g, const sdk::Host& host);

/// How rows in memory are divided; it changes no bit of the result.
struct IntegerRowLayout {
  std::int64_t block = 1;  ///< rows of a block
  std::int64_t step = 0;   ///< bytes between rows
  std::int64_t workers = 1;
  /// Threads share the rows and divide the panels, of weights that are larger than the rows: each weight is then read once.
  bool by_panels = false;
};
IntegerRowLayout integer_row_layout(const ConvGeometry& g, const sdk::Host& host);

/// The lines of x that a block of lines of results reads, each with its padding.
struct IntegerLineLayout {
  IntegerLineParts parts;
  std::int64_t width, step;     ///< of a copied line, in pixels and bytes
  std::int64_t blocks, height;  ///< blocks of lines of results of all images, and the lines of the largest one
  std::int64_t workers;

  IntegerLineLayout(const ConvGeometry& g, const sdk::Host& host);
  /// Copied lines for `lines` lines of results.
  static std::int64_t copied(const ConvGeometry& g, std::int64_t lines) {
    return (lines - 1) * g.stride_height + (g.kernel_height - 1) * g.dilation_height + 1;
  }
};

}  // namespace tenon::openblas
