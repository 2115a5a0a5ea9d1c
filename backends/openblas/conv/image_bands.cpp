// SPDX-License-Identifier: Apache-2.0
#include "conv/image_bands.h"

#include "simd/foreach_target.h"
#include "workers.h"

#include <algorithm>
#include <cstring>

#include <tenon/sdk/rounding.h>

#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// Copies the parts of `n` pixels that are `step` bytes apart to consecutive ones.
void copy_pixels(const std::uint8_t* from, std::int64_t step, std::int64_t n, std::uint8_t* out) {
  const Wide<std::uint8_t> d;
  for (std::int64_t i = 0; i < n; ++i, from += step, out += band_pixel_bytes) {
    for (std::int64_t c = 0; c < band_pixel_bytes; c += lanes(d)) hn::StoreU(hn::LoadU(d, from + c), d, out + c);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Bytes of a band that stay in L2 while panels stream through it.
constexpr std::int64_t band_bytes = 512 * 1024;
// Bands of a whole image up to this size may be shared by the threads.
constexpr std::int64_t shared_band_bytes = 1536 * 1024;
// Rows worth a task of their own, a multiple of the register tiles.
constexpr std::int64_t task_rows = 128;

}  // namespace

Band::Band(const DirectConv& conv, std::int64_t element_size, std::int64_t result_lines)
    : high(conv.high),
      wide(conv.wide),
      width(conv.wide.results + wide.span),
      lines(result_lines),
      parts(conv.channels * element_size / band_pixel_bytes),
      phase_step((result_lines + high.span) * width * band_pixel_bytes),
      part_step(high.phases * wide.phases * phase_step) {}

bool suits_bands(const DirectConv& conv, std::int64_t element_size) {
  if (conv.high.taps * conv.wide.taps <= 1 || conv.channels / conv.groups * element_size % band_pixel_bytes != 0) return false;
  const BandAxis high(conv.high), wide(conv.wide);
  constexpr std::int64_t max_elements = std::int64_t{1} << 30;  // offsets have 32 bits
  const std::int64_t pixels = high.phases * wide.phases * (conv.high.results + high.span) * (conv.wide.results + wide.span);
  return 3 * wide.span <= conv.wide.results && conv.channels <= max_elements / std::max<std::int64_t>(1, pixels);
}

std::int64_t min_band_rows(const DirectConv& conv, std::int64_t element_size) {
  const Band whole(conv, element_size, conv.high.results);
  // Images that fit are divided into bands of nearly equal height, of which the highest has task_rows rows.
  const std::int64_t of_several_lines = whole.bytes() <= band_bytes ? std::min(whole.rows(conv, whole.lines), task_rows / 3) : 0;
  return std::max(conv.wide.results, of_several_lines);
}

BandLayout::BandLayout(const DirectConv& conv, std::int64_t element_size, const sdk::Host& host) {
  const std::int64_t weight_bytes = conv.k() * conv.group_columns() * element_size;
  const std::int64_t whole = Band(conv, element_size, conv.high.results).bytes();
  // Weights are read from memory, those of a whole net do not stay in the cache: once if they are more than the image.
  shared = whole <= shared_band_bytes && weight_bytes > 2 * whole && conv.group_columns() >= 32 * host.thread_count();
  lines = conv.high.results;
  if (!shared) {
    // Bands fit the cache, and each thread gets several.
    const std::int64_t workers_of_all = host.thread_count();
    const std::int64_t first = Band(conv, element_size, 1).bytes(), line = Band(conv, element_size, 2).bytes() - first;
    const std::int64_t fitting = std::max<std::int64_t>(1, (band_bytes - first) / line + 1);
    const std::int64_t fair = sdk::ceil_div(conv.images * conv.high.results, 4 * workers_of_all);
    const std::int64_t worthwhile = sdk::ceil_div(task_rows, conv.wide.results);
    lines = std::min({lines, fitting, std::max(fair, worthwhile)});
  }
  blocks = sdk::ceil_div(conv.high.results, lines);
  lines = sdk::ceil_div(conv.high.results, blocks);
  workers = shared ? 1 : worker_count(host, conv.images * blocks);
  if (shared) images = std::clamp<std::int64_t>(shared_band_bytes / whole, 1, std::max<std::int64_t>(1, conv.images));
}

void fill_band(const DirectConv& conv, const Band& band, const void* image, std::uint8_t padding, std::int64_t first,
               std::int64_t result_lines, std::int64_t part, std::int64_t part_end, void* out_band) {
  const std::int64_t pixel_step = band.parts * band_pixel_bytes;
  const auto fill = [&](std::uint8_t* out, std::int64_t pixels) {
    std::memset(out, padding, static_cast<std::size_t>(pixels * band_pixel_bytes));
  };
  for (; part < part_end; ++part) {
    const std::uint8_t* const from = static_cast<const std::uint8_t*>(image) + part * band_pixel_bytes;
    for (std::int64_t phase = 0; phase < band.high.phases * band.wide.phases; ++phase) {
      const std::int64_t p = phase / band.wide.phases, left = band.wide.low + phase % band.wide.phases;
      std::uint8_t* out = static_cast<std::uint8_t*>(out_band) + part * band.part_step + phase * band.phase_step;
      // The pixels of a line that are in the image: begin <= i < end.
      const std::int64_t begin = std::min(band.width, left >= 0 ? 0 : sdk::ceil_div(-left, band.wide.phases));
      const std::int64_t inside = sdk::ceil_div(std::max<std::int64_t>(0, conv.wide.size - left), band.wide.phases);
      const std::int64_t end = std::clamp(inside, begin, band.width);
      for (std::int64_t i = 0; i < result_lines + band.high.span; ++i, out += band.width * band_pixel_bytes) {
        const std::int64_t line = band.high.low + (first + i) * band.high.phases + p;
        if (line < 0 || line >= conv.high.size) {
          fill(out, band.width);
          continue;
        }
        fill(out, begin);
        TENON_DISPATCH(copy_pixels)
        (from + (line * conv.wide.size + left + begin * band.wide.phases) * pixel_step, band.wide.phases * pixel_step, end - begin,
         out + begin * band_pixel_bytes);
        fill(out + end * band_pixel_bytes, band.width - end);
      }
    }
  }
}

void write_result_offsets(const DirectConv& conv, const Band& band, std::int64_t* out) {
  for (std::int64_t i = 0; i < conv.high.results; ++i) {
    for (std::int64_t j = 0; j < band.width; ++j) {
      const std::int64_t line = conv.high.first + i * conv.high.step, column = conv.wide.first + j * conv.wide.step;
      *out++ = j < conv.wide.results ? (line * conv.out_width + column) * conv.out_channels : -1;
    }
  }
}

}  // namespace tenon::openblas
#endif
