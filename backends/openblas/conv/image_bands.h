// SPDX-License-Identifier: Apache-2.0
// image_bands.h - padded copies of some lines of an image, in which tile registers (Intel AMX) read the pixels of each tap of a convolution
// where they lie, instead of rows that are gathered for all taps.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tenon/sdk/kernel.h>

#include "conv/conv_direct.h"

namespace tenon::openblas {

/// Bytes of a pixel in a part of a band: those of a row of a tile. Rows of packed weights are in the order (channels / part, taps, channels
/// of a part), so that the pixels of a part stay in L1 for all taps.
inline constexpr std::int64_t band_pixel_bytes = 64;

/// One dimension of a band. Element i of phase p is at low + i phases + p of the image, or padding outside of it: with strides, the pixels
/// that a tap reads for neighbouring results are neighbours in one phase.
struct BandAxis {
  std::int64_t phases = 1;
  std::int64_t low = 0;   ///< may be negative
  std::int64_t span = 0;  ///< the largest distance of taps in elements of a phase

  explicit BandAxis(const ConvAxis& axis)
      : phases(axis.read_step),
        low(axis.offset + std::min<std::int64_t>(0, (axis.taps - 1) * axis.tap_step)),
        span((axis.taps - 1) * std::max(axis.tap_step, -axis.tap_step) / axis.read_step) {}
  /// The distance of tap t from the first element of a phase's window, in the image.
  std::int64_t position(const ConvAxis& axis, std::int64_t t) const { return axis.offset + t * axis.tap_step - low; }
};

/// Lines of one image as (parts of the channels, phases, lines, width, 64 bytes). The rows of the product run over lines of the padded
/// width; those between the lines are computed and not stored. Steps are in bytes.
struct Band {
  BandAxis high, wide;
  std::int64_t width = 0;  ///< of a line of a phase, in pixels
  std::int64_t lines = 0;  ///< of results
  std::int64_t parts = 0;
  std::int64_t phase_step = 0, part_step = 0;

  Band(const DirectConv& conv, std::int64_t element_size, std::int64_t result_lines);
  std::int64_t bytes() const { return parts * part_step; }
  std::int64_t rows(const DirectConv& conv, std::int64_t result_lines) const { return (result_lines - 1) * width + conv.wide.results; }
};

/// Whether bands suit the shape: of several taps, whole parts of the channels in each group, and lines so wide that the rows between them
/// are few.
bool suits_bands(const DirectConv& conv, std::int64_t element_size);

/// Rows that the product of every band has at least, whatever the number of threads.
std::int64_t min_band_rows(const DirectConv& conv, std::int64_t element_size);

/// How the work is divided; it changes no bit of the result.
struct BandLayout {
  bool shared = false;      ///< one band for each image, whose panels the threads divide; else each thread fills its own bands
  std::int64_t lines = 1;   ///< of results in a band
  std::int64_t blocks = 1;  ///< bands of an image
  std::int64_t workers = 1;
  std::int64_t images = 1;  ///< as many as the threads may share at a time

  BandLayout(const DirectConv& conv, std::int64_t element_size, const sdk::Host& host);
};

/// Fills parts [part, part_end) of a band with the lines for `result_lines` lines of results from line `first` on; `padding` is each byte
/// of a pixel outside of the image.
void fill_band(const DirectConv& conv, const Band& band, const void* image, std::uint8_t padding, std::int64_t first,
               std::int64_t result_lines, std::int64_t part, std::int64_t part_end, void* out_band);

/// Where the pixels of each tap are in the parts of one group, in the order of packed weights, in units of `unit` bytes.
template <class Offset>
void write_tap_offsets(const DirectConv& conv, const Band& band, std::int64_t unit, Offset* out) {
  for (std::int64_t part = 0; part < band.parts / conv.groups; ++part) {
    for (std::int64_t a = 0; a < conv.high.taps; ++a) {
      for (std::int64_t b = 0; b < conv.wide.taps; ++b) {
        const std::int64_t high = band.high.position(conv.high, a), wide = band.wide.position(conv.wide, b);
        const std::int64_t phase = high % band.high.phases * band.wide.phases + wide % band.wide.phases;
        const std::int64_t pixel = high / band.high.phases * band.width + wide / band.wide.phases;
        *out++ = static_cast<Offset>((part * band.part_step + phase * band.phase_step + pixel * band_pixel_bytes) / unit);
      }
    }
  }
}

/// Where the rows of a whole image are in y, in elements; -1 between the lines.
void write_result_offsets(const DirectConv& conv, const Band& band, std::int64_t* out);

}  // namespace tenon::openblas
