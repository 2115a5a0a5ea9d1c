// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_gather.h"

#include <algorithm>
#include <cstring>

#include <tenon/sdk/rounding.h>

namespace tenon::openblas {
namespace {

/// Copies n bytes; the source has `readable` ones, the destination `writable`. A copy of 16 bytes costs less than a call of memcpy.
inline void copy_run(const std::uint8_t* from, std::int64_t n, std::int64_t readable, std::uint8_t* to, std::int64_t writable) {
  const std::int64_t whole = sdk::round_up(n, 16);
  if (n > 256 || whole > readable || whole > writable) {
    std::memcpy(to, from, static_cast<std::size_t>(n));
    return;
  }
  for (std::int64_t i = 0; i < whole; i += 16) std::memcpy(to + i, from + i, 16);
}

}  // namespace

void gather_integer_rows(const ConvGeometry& g, const std::uint8_t* x, std::int64_t group, std::uint8_t zero_point, std::int64_t begin,
                         std::int64_t end, std::int64_t step, std::uint8_t* out) {
  const std::int64_t channels = g.group_channels();
  // Neighbouring taps are one run if they are contiguous in memory.
  const bool runs = g.dilation_width == 1 && g.groups == 1;
  const std::uint8_t* const source = x + group * channels;
  const std::uint8_t* const source_end = x + g.images * g.pixels() * g.channels;
  const std::uint8_t* const out_end = out + (end - begin) * step;
  std::int64_t column = begin % g.out_width, line = begin / g.out_width % g.out_height, image = begin / g.out_pixels();
  // Short runs of windows inside the image, as those of an image with three channels, are copied by vectors of 16 bytes.
  const std::int64_t run = g.kernel_width * channels, vectors = sdk::ceil_div(run, std::int64_t{16});
  const std::int64_t line_step = g.dilation_height * g.width * g.channels, tail = step - g.taps() * channels;
  const bool is_short = runs && vectors <= 4 && tail <= 64;
  std::uint8_t* row_out = out;
  for (std::int64_t row = begin; row < end; ++row, row_out += step) {
    std::uint8_t* to = row_out;
    const std::int64_t left = column * g.stride_width - g.pad_left, top = line * g.stride_height - g.pad_top;
    const std::int64_t bottom = top + (g.kernel_height - 1) * g.dilation_height;
    const auto advance = [&] {
      if (++column < g.out_width) return;
      column = 0;
      if (++line < g.out_height) return;
      line = 0;
      ++image;
    };
    if (is_short && left >= 0 && left + g.kernel_width <= g.width && top >= 0 && bottom < g.height) {
      const std::uint8_t* from = source + ((image * g.height + top) * g.width + left) * g.channels;
      const bool readable = from + (g.kernel_height - 1) * line_step + 16 * vectors <= source_end;
      if (readable && row_out + (g.kernel_height - 1) * run + 16 * vectors <= out_end) {
        if (vectors == 2) {  // 7 taps of three channels: the copies are two instructions each
          for (std::int64_t a = 0; a < g.kernel_height; ++a, from += line_step, to += run) std::memcpy(to, from, 32);
        } else {
          for (std::int64_t a = 0; a < g.kernel_height; ++a, from += line_step, to += run) {
            for (std::int64_t v = 0; v < vectors; ++v) std::memcpy(to + 16 * v, from + 16 * v, 16);
          }
        }
        for (std::int64_t i = 0; i < tail; ++i) to[i] = 0;
        advance();
        continue;
      }
    }
    const auto fill = [&](std::int64_t n) {
      std::memset(to, zero_point, static_cast<std::size_t>(n));
      to += n;
    };
    const auto copy = [&](const std::uint8_t* from, std::int64_t n) {
      copy_run(from, n, source_end - from, to, out_end - to);
      to += n;
    };
    for (std::int64_t a = 0; a < g.kernel_height; ++a) {
      const std::int64_t high = line * g.stride_height - g.pad_top + a * g.dilation_height;
      if (high < 0 || high >= g.height) {
        fill(g.kernel_width * channels);
        continue;
      }
      const std::uint8_t* const from = source + (image * g.height + high) * g.width * g.channels;
      if (runs) {
        const std::int64_t first = std::clamp<std::int64_t>(left, 0, g.width);
        const std::int64_t last = std::clamp<std::int64_t>(left + g.kernel_width, first, g.width);
        const std::int64_t before = std::clamp<std::int64_t>(first - left, 0, g.kernel_width);
        if (before > 0) fill(before * channels);
        if (last > first) copy(from + first * channels, (last - first) * channels);
        const std::int64_t after = g.kernel_width - before - (last - first);
        if (after > 0) fill(after * channels);
        continue;
      }
      for (std::int64_t b = 0; b < g.kernel_width; ++b) {
        const std::int64_t wide = left + b * g.dilation_width;
        if (wide < 0 || wide >= g.width) {
          fill(channels);
        } else {
          copy(from + wide * g.channels, channels);
        }
      }
    }
    std::memset(to, 0, static_cast<std::size_t>(row_out + step - to));
    advance();
  }
}

}  // namespace tenon::openblas
