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

/// Bytes of a part of a row, unless a part is a whole line of taps (integer_line_step).
inline constexpr std::int64_t integer_part_bytes = band_pixel_bytes;

/// A row whose parts are read from where they are in bands or lines of the image, instead of gathering them.
struct IntegerRowParts {
  std::int64_t count = 0, size = 0;  ///< parts of a row, each of which has an element of a_offsets, and their bytes; 0: rows are gathered
  std::int64_t filled = 0;           ///< bytes of a part that are not padding, which meets weights of 0
};

/// Bytes from a line of taps to the next along the packed k, if each is one part with padding; 0: there is no padding. The packed weights
/// depend on nothing else of how lines are read.
std::int64_t integer_line_step(const ConvGeometry& g, const sdk::Host& host);

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

/// The copied lines of x that a block of lines of results reads. A line is one of the image with the padding at its sides.
struct IntegerLineLayout {
  IntegerRowParts parts;
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
