// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_bands.h"

#include "simd/foreach_target.h"
#include "workers.h"

#include <algorithm>

#include <tenon/sdk/rounding.h>
#include <tenon/sdk/scratch_arena.h>

#include "simd/simd.h"

#ifndef TENON_OPENBLAS_CONV_BANDS_ONCE
#define TENON_OPENBLAS_CONV_BANDS_ONCE
namespace tenon::openblas {
namespace {

/// One dimension of a band. Element i of phase p is at low + i phases + p of the image, or zero outside of it: with strides, the pixels
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

/// Some lines of one image as (channels / 32, phases, lines, width, 32). The rows of the product run over lines of the padded width; those
/// between the lines are computed and not stored.
struct Band {
  BandAxis high, wide;
  std::int64_t width = 0;  ///< of a line of a phase
  std::int64_t lines = 0;  ///< of results
  std::int64_t parts = 0;  ///< of 32 channels

  Band(const DirectConv& conv, std::int64_t result_lines)
      : high(conv.high), wide(conv.wide), width(conv.wide.results + wide.span), lines(result_lines), parts(conv.channels / band_channels) {}
  std::int64_t phase_step() const { return (lines + high.span) * width * band_channels; }
  std::int64_t part_step() const { return high.phases * wide.phases * phase_step(); }
  std::int64_t elements() const { return parts * part_step(); }
  std::int64_t rows(const DirectConv& conv, std::int64_t result_lines) const { return (result_lines - 1) * width + conv.wide.results; }
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// Copies `n` pixels of 32 channels, which are `step` elements apart, to consecutive ones.
HWY_INLINE void copy_pixels(const std::uint16_t* from, std::int64_t step, std::int64_t n, std::uint16_t* out) {
  const Wide<std::uint16_t> d;
  for (std::int64_t i = 0; i < n; ++i, from += step, out += band_channels) {
    for (std::int64_t c = 0; c < band_channels; c += lanes(d)) hn::StoreU(hn::LoadU(d, from + c), d, out + c);
  }
}

/// Fills part `part` of the lines of a band that are the results' from line `first` on.
void fill_part(const DirectConv& conv, const Band& band, const std::uint16_t* image, std::int64_t part, std::int64_t first,
               std::int64_t result_lines, std::uint16_t* out_band) {
  const std::uint16_t* const from = image + part * band_channels;
  for (std::int64_t p = 0; p < band.high.phases; ++p) {
    for (std::int64_t q = 0; q < band.wide.phases; ++q) {
      std::uint16_t* out = out_band + part * band.part_step() + (p * band.wide.phases + q) * band.phase_step();
      // The pixels of a line that are in the image: begin <= i < end.
      const std::int64_t left = band.wide.low + q;
      const std::int64_t begin = std::min(band.width, left >= 0 ? 0 : sdk::ceil_div(-left, band.wide.phases));
      const std::int64_t end =
          std::clamp(sdk::ceil_div(std::max<std::int64_t>(0, conv.wide.size - left), band.wide.phases), begin, band.width);
      for (std::int64_t i = 0; i < result_lines + band.high.span; ++i, out += band.width * band_channels) {
        const std::int64_t line = band.high.low + (first + i) * band.high.phases + p;
        if (line < 0 || line >= conv.high.size) {
          std::fill_n(out, band.width * band_channels, std::uint16_t{0});
          continue;
        }
        std::fill_n(out, begin * band_channels, std::uint16_t{0});
        copy_pixels(from + (line * conv.wide.size + left + begin * band.wide.phases) * conv.channels, band.wide.phases * conv.channels,
                    end - begin, out + begin * band_channels);
        std::fill_n(out + end * band_channels, (band.width - end) * band_channels, std::uint16_t{0});
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

using sdk::BFloat16;

// Bytes of a band that stay in L2 while panels stream through it.
constexpr std::int64_t band_bytes = 512 * 1024;
// Bands of a whole image up to this size are shared by the threads, which divide the panels, if the weights are larger than L2.
constexpr std::int64_t shared_bytes = 1536 * 1024;
constexpr std::int64_t near_weight_bytes = 1280 * 1024;
// Rows of a block that are worth a task of their own, a multiple of the register tiles.
constexpr std::int64_t task_rows = 128;

/// How the work is divided; it changes no bit of the result.
struct Layout {
  bool shared = false;      ///< one band for each image, whose panels the threads divide; else each thread fills its own bands
  std::int64_t lines = 1;   ///< of results in a band
  std::int64_t blocks = 1;  ///< of an image
  std::int64_t workers = 1;

  Layout(const DirectConv& conv, const sdk::Host& host) {
    const std::int64_t weight_bytes = conv.k() * conv.group_columns() * 2;
    const std::int64_t whole = Band(conv, conv.high.results).elements() * 2;
    workers = host.thread_count();
    shared = whole <= shared_bytes && weight_bytes > near_weight_bytes && panel_count<BFloat16>(conv.group_columns()) >= workers;
    lines = conv.high.results;
    if (!shared) {
      // Bands fit the cache, and each thread gets several.
      const std::int64_t line = Band(conv, 2).elements() * 2 - Band(conv, 1).elements() * 2;
      const std::int64_t fitting = std::max<std::int64_t>(1, (band_bytes - Band(conv, 1).elements() * 2) / line + 1);
      const std::int64_t fair = sdk::ceil_div(conv.images * conv.high.results, 4 * workers);
      const std::int64_t worthwhile = sdk::ceil_div(task_rows, conv.wide.results);
      lines = std::min({lines, fitting, std::max(fair, worthwhile)});
    }
    blocks = sdk::ceil_div(conv.high.results, lines);
    lines = sdk::ceil_div(conv.high.results, blocks);
    workers = shared ? 1 : worker_count(host, conv.images * blocks);
  }
};

/// The parts of the scratch memory.
struct Scratch {
  std::int32_t* a_offsets;
  std::int64_t* y_offsets;  ///< of the rows of one image
  BFloat16* bands;          ///< of each worker

  Scratch(sdk::ScratchArena& arena, const DirectConv& conv, const Layout& layout) {
    const Band band(conv, layout.lines);
    a_offsets = arena.allocate<std::int32_t>(conv.k() / band_channels);
    y_offsets = arena.allocate<std::int64_t>(conv.high.results * band.width);
    bands = arena.allocate<BFloat16>(layout.workers * band.elements());
  }
};

/// Where the 32 channels of each tap are, in the order of packed weights.
void write_a_offsets(const DirectConv& conv, const Band& band, std::int32_t* out) {
  for (std::int64_t part = 0; part < conv.channels / conv.groups / band_channels; ++part) {
    for (std::int64_t a = 0; a < conv.high.taps; ++a) {
      for (std::int64_t b = 0; b < conv.wide.taps; ++b) {
        const std::int64_t high = band.high.position(conv.high, a), wide = band.wide.position(conv.wide, b);
        const std::int64_t phase = high % band.high.phases * band.wide.phases + wide % band.wide.phases;
        const std::int64_t pixel = high / band.high.phases * band.width + wide / band.wide.phases;
        *out++ = static_cast<std::int32_t>(part * band.part_step() + phase * band.phase_step() + pixel * band_channels);
      }
    }
  }
}

/// Where the rows of one image are in y, -1 between the lines.
void write_y_offsets(const DirectConv& conv, const Band& band, std::int64_t* out) {
  for (std::int64_t i = 0; i < conv.high.results; ++i) {
    for (std::int64_t j = 0; j < band.width; ++j) {
      const std::int64_t line = conv.high.first + i * conv.high.step, column = conv.wide.first + j * conv.wide.step;
      *out++ = j < conv.wide.results ? (line * conv.out_width + column) * conv.out_channels : -1;
    }
  }
}

/// The product of the rows of `lines` lines from line `first` of an image on, with all panels of a group.
PanelProduct<BFloat16> product_of(const DirectConv& conv, const DirectOperands<BFloat16>& o, const Band& band, const Scratch& memory,
                                  const BFloat16* a, std::int64_t image, std::int64_t first, std::int64_t lines, std::int64_t group) {
  const std::int64_t column = group * conv.group_columns();
  const std::int64_t at = image * conv.out_height * conv.out_width * conv.out_channels + column;
  PanelProduct<BFloat16> p;
  p.rows = band.rows(conv, lines);
  p.k = conv.k();
  p.columns = conv.group_columns();
  p.a = a + group * (band.parts / conv.groups) * band.part_step();
  p.a_step = band_channels;
  p.a_offsets = memory.a_offsets;
  p.panels = o.panels + group * panel_elements<BFloat16>(p.k, p.columns);
  p.y = o.y + at;
  p.y_step = conv.out_channels;
  p.y_offsets = memory.y_offsets + first * band.width;
  p.bias = o.bias == nullptr ? nullptr : o.bias + column;
  p.residual = o.residual == nullptr ? nullptr : o.residual + at;
  p.activation = o.activation;
  return p;
}

void fill_parts(const DirectConv& conv, const Band& band, const BFloat16* x, std::int64_t image, std::int64_t first, std::int64_t lines,
                std::int64_t part, std::int64_t parts_end, BFloat16* out_band) {
  const auto* const from = reinterpret_cast<const std::uint16_t*>(x + image * conv.high.size * conv.wide.size * conv.channels);
  for (; part < parts_end; ++part) {
    TENON_DISPATCH(fill_part)(conv, band, from, part, first, lines, reinterpret_cast<std::uint16_t*>(out_band));
  }
}

/// Each thread fills a band and multiplies it with all panels.
void by_lines(const DirectConv& conv, const DirectOperands<BFloat16>& o, const Band& band, const Layout& layout, const Scratch& memory,
              const sdk::Host& host) {
  for_each_task(host, conv.images * layout.blocks, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t image = task / layout.blocks, block = task % layout.blocks;
    const std::int64_t first = block * conv.high.results / layout.blocks;
    const std::int64_t lines = (block + 1) * conv.high.results / layout.blocks - first;
    BFloat16* const mine = memory.bands + worker * band.elements();
    fill_parts(conv, band, o.x, image, first, lines, 0, band.parts, mine);
    for (std::int64_t group = 0; group < conv.groups; ++group) {
      multiply_panels(product_of(conv, o, band, memory, mine, image, first, lines, group));
    }
  });
}

/// The threads fill the band of an image and divide the panels, so that each weight is read once for an image.
void by_panels(const DirectConv& conv, const DirectOperands<BFloat16>& o, const Band& band, const Scratch& memory, const sdk::Host& host) {
  const std::int64_t panels = panel_count<BFloat16>(conv.group_columns());
  for (std::int64_t image = 0; image < conv.images; ++image) {
    host.parallel_for(band.parts, 1, [&](std::int64_t begin, std::int64_t end) {
      fill_parts(conv, band, o.x, image, 0, conv.high.results, begin, end, memory.bands);
    });
    for (std::int64_t group = 0; group < conv.groups; ++group) {
      const PanelProduct<BFloat16> whole = product_of(conv, o, band, memory, memory.bands, image, 0, conv.high.results, group);
      host.parallel_for(panels, 1, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t column = begin * panel_width<BFloat16>;
        PanelProduct<BFloat16> part = whole;
        part.columns = std::min(end * panel_width<BFloat16>, whole.columns) - column;
        part.panels += begin * panel_step<BFloat16>(whole.k);
        part.y += column;
        if (part.bias != nullptr) part.bias += column;
        if (part.residual != nullptr) part.residual += column;
        multiply_panels(part);
      });
    }
  }
}

}  // namespace

bool reads_bands(const DirectConv& conv) {
  if (!bf16_takes_offsets() || conv.high.taps * conv.wide.taps <= 1 || conv.channels / conv.groups % band_channels != 0) return false;
  // Rows between the lines are at most as many as a third of the others, and offsets have 32 bits.
  const BandAxis high(conv.high), wide(conv.wide);
  constexpr std::int64_t max_elements = std::int64_t{1} << 30;
  const std::int64_t pixels = high.phases * wide.phases * (conv.high.results + high.span) * (conv.wide.results + wide.span);
  return 3 * wide.span <= conv.wide.results && conv.channels <= max_elements / std::max<std::int64_t>(1, pixels);
}

std::size_t bands_scratch(const DirectConv& conv, const sdk::Host& host) {
  if (conv.rows() == 0) return 0;
  sdk::ScratchArena arena(nullptr);
  const Scratch memory(arena, conv, Layout(conv, host));
  return arena.required_bytes();
}

void bands_conv(const DirectConv& conv, const DirectOperands<BFloat16>& operands, const sdk::Host& host, char* scratch) {
  const Layout layout(conv, host);
  const Band band(conv, layout.lines);
  sdk::ScratchArena arena(scratch);
  const Scratch memory(arena, conv, layout);
  write_a_offsets(conv, band, memory.a_offsets);
  write_y_offsets(conv, band, memory.y_offsets);
  if (layout.shared) {
    by_panels(conv, operands, band, memory, host);
  } else {
    by_lines(conv, operands, band, layout, memory, host);
  }
}

}  // namespace tenon::openblas
#endif
