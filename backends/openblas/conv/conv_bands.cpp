// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_bands.h"

#include <algorithm>

#include <tenon/sdk/scratch_arena.h>

#include "workers.h"

namespace tenon::openblas {
namespace {

using sdk::BFloat16;
constexpr std::int64_t element_size = sizeof(BFloat16);

/// A convolution with the parts of its scratch memory.
struct BandsConv {
  const DirectConv& conv;
  BandLayout layout;
  Band band;
  std::int32_t* a_offsets;
  std::int64_t* y_offsets;  ///< of the rows of one image
  BFloat16* bands;          ///< of each worker, or of images that the threads share

  BandsConv(const DirectConv& of, const sdk::Host& host, sdk::ScratchArena& arena)
      : conv(of), layout(conv, element_size, host), band(conv, element_size, layout.lines) {
    a_offsets = arena.allocate<std::int32_t>(conv.k() / band_channels);
    y_offsets = arena.allocate<std::int64_t>(conv.high.results * band.width);
    bands = arena.allocate<BFloat16>(layout.workers * layout.images * band_elements());
  }
  std::int64_t band_elements() const { return band.bytes() / element_size; }
};

const BFloat16* image_at(const DirectConv& conv, const BFloat16* x, std::int64_t image) {
  return x + image * conv.high.size * conv.wide.size * conv.channels;
}

/// The product of the rows of `lines` lines from line `first` of an image on, with all panels of a group; a is their band.
PanelProduct<BFloat16> product_of(const BandsConv& b, const DirectOperands<BFloat16>& o, const BFloat16* a, std::int64_t image,
                                  std::int64_t first, std::int64_t lines, std::int64_t group) {
  const DirectConv& conv = b.conv;
  const std::int64_t column = group * conv.group_columns();
  const std::int64_t at = image * conv.out_height * conv.out_width * conv.out_channels + column;
  PanelProduct<BFloat16> p;
  p.rows = b.band.rows(conv, lines);
  p.k = conv.k();
  p.columns = conv.group_columns();
  p.a = a + group * (b.band.parts / conv.groups) * b.band.part_step / element_size;
  p.a_step = band_channels;
  p.a_offsets = b.a_offsets;
  p.panels = o.panels + group * panel_elements<BFloat16>(p.k, p.columns);
  p.y = o.y + at;
  p.y_step = conv.out_channels;
  p.y_offsets = b.y_offsets + first * b.band.width;
  p.bias = o.bias == nullptr ? nullptr : o.bias + column;
  p.residual = o.residual == nullptr ? nullptr : o.residual + at;
  p.activation = o.activation;
  return p;
}

/// Each thread fills a band and multiplies it with all panels.
void by_lines(const BandsConv& b, const DirectOperands<BFloat16>& o, const sdk::Host& host) {
  const std::int64_t blocks = b.layout.blocks, results = b.conv.high.results;
  for_each_task(host, b.conv.images * blocks, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t image = task / blocks, block = task % blocks;
    const std::int64_t first = block * results / blocks, lines = (block + 1) * results / blocks - first;
    BFloat16* const own = b.bands + worker * b.band_elements();
    fill_band(b.conv, b.band, image_at(b.conv, o.x, image), 0, first, lines, 0, b.band.parts, own);
    for (std::int64_t group = 0; group < b.conv.groups; ++group) {
      multiply_panels(product_of(b, o, own, image, first, lines, group));
    }
  });
}

/// The part of a product with one panel.
PanelProduct<BFloat16> panel_of(const PanelProduct<BFloat16>& whole, std::int64_t panel) {
  const std::int64_t column = panel * panel_width<BFloat16>;
  PanelProduct<BFloat16> part = whole;
  part.columns = std::min(panel_width<BFloat16>, whole.columns - column);
  part.panels += panel * panel_step<BFloat16>(whole.k);
  part.y += column;
  if (part.bias != nullptr) part.bias += column;
  if (part.residual != nullptr) part.residual += column;
  return part;
}

/// The threads fill the bands of some images and divide the panels, so that each weight is read once for these images.
void by_panels(const BandsConv& b, const DirectOperands<BFloat16>& o, const sdk::Host& host) {
  const std::int64_t lines = b.conv.high.results, parts = b.band.parts;
  for (std::int64_t first = 0; first < b.conv.images; first += b.layout.images) {
    const std::int64_t count = std::min(b.layout.images, b.conv.images - first);
    host.parallel_for(count * parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t image = i / parts, part = i % parts;
        fill_band(b.conv, b.band, image_at(b.conv, o.x, first + image), 0, 0, lines, part, part + 1, b.bands + image * b.band_elements());
      }
    });
    for (std::int64_t group = 0; group < b.conv.groups; ++group) {
      host.parallel_for(panel_count<BFloat16>(b.conv.group_columns()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t panel = begin; panel < end; ++panel) {
          for (std::int64_t image = 0; image < count; ++image) {
            multiply_panels(panel_of(product_of(b, o, b.bands + image * b.band_elements(), first + image, 0, lines, group), panel));
          }
        }
      });
    }
  }
}

}  // namespace

bool reads_bands(const DirectConv& conv, const sdk::Host& host) {
  return suits_bands(conv, element_size) && bf16_takes_offsets(instruction_set_of(host));
}

std::size_t bands_scratch(const DirectConv& conv, const sdk::Host& host) {
  if (conv.rows() == 0) return 0;
  sdk::ScratchArena arena(nullptr);
  const BandsConv b(conv, host, arena);
  return arena.required_bytes();
}

void bands_conv(const DirectConv& conv, const DirectOperands<BFloat16>& operands, const sdk::Host& host, char* scratch) {
  sdk::ScratchArena arena(scratch);
  const BandsConv b(conv, host, arena);
  write_tap_offsets(conv, b.band, element_size, b.a_offsets);
  write_result_offsets(conv, b.band, b.y_offsets);
  if (b.layout.shared) {
    by_panels(b, operands, host);
  } else {
    by_lines(b, operands, host);
  }
}

}  // namespace tenon::openblas
