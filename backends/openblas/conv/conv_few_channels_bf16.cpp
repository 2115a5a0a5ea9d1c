// SPDX-License-Identifier: Apache-2.0
// conv_few_channels_bf16.cpp - the lines under a line of results, interleaved: (width, C kh), so that neighbouring pixels are a row of the
// product as they lie in memory, and the rows of neighbouring results overlap.
#include <algorithm>
#include <cstring>

#include "conv/conv_few_channels.h"
#include "gemm/panels.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

using sdk::BFloat16;

// Lines of results worth a task.
constexpr std::int64_t task_lines = 4;

/// Elements of an interleaved pixel: an even number, because products are of pairs.
std::int64_t pixel_elements(const ConvGeometry& g) {
  return sdk::round_up(g.channels * g.kernel_height, PanelLayout<BFloat16>::group);
}
std::int64_t depth(const ConvGeometry& g) {
  return g.kernel_width * pixel_elements(g);
}
std::int64_t line_width(const ConvGeometry& g) {
  return (g.out_width - 1) * g.stride_width + g.kernel_width;
}

/// The memory of one worker.
struct Memory {
  explicit Memory(const ConvGeometry& g)
      : lines_size(scratch_bytes(line_width(g) * pixel_elements(g), sizeof(BFloat16))),
        zeros_size(scratch_bytes(g.width, sizeof(BFloat16))),
        sources_size(scratch_bytes(pixel_elements(g), sizeof(void*))) {}
  std::size_t lines_size, zeros_size, sources_size;
  std::size_t per_worker() const { return lines_size + zeros_size + sources_size; }
};

/// Interleaves the lines of one image x under line `row` of results.
void interleave(const ConvGeometry& g, const BFloat16* x, std::int64_t row, const BFloat16* zeros, const BFloat16** sources,
                BFloat16* out) {
  const std::int64_t elements = pixel_elements(g), width = line_width(g);
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::int64_t c = i / g.kernel_height, a = i % g.kernel_height;
    const std::int64_t line = row * g.stride_height - g.pad_top + a * g.dilation_height;
    const bool inside = c < g.channels && line >= 0 && line < g.height;
    sources[i] = inside ? x + (c * g.height + line) * g.width : zeros;
  }
  const std::int64_t before = std::min(g.pad_left, width), n = std::clamp<std::int64_t>(width - before, 0, g.width);
  std::fill_n(out, before * elements, BFloat16{});
  out += before * elements;
  for (std::int64_t i = 0; i < elements; i += 2) {
    const BFloat16 *const first = sources[i], *const second = sources[i + 1];
    for (std::int64_t j = 0; j < n; ++j) {
      const std::uint32_t pair = first[j].bits | static_cast<std::uint32_t>(second[j].bits) << 16;
      std::memcpy(out + j * elements + i, &pair, sizeof pair);
    }
  }
  std::fill_n(out + n * elements, (width - before - n) * elements, BFloat16{});
}

}  // namespace

template <>
std::int64_t few_channels_weight_elements<BFloat16>(const ConvGeometry& g) {
  return panel_elements<BFloat16>(depth(g), g.out_channels);
}

template <>
void few_channels_weights(const ConvGeometry& g, const BFloat16* w, BFloat16* out_packed) {
  constexpr std::int64_t columns = panel_width<BFloat16>, group = PanelLayout<BFloat16>::group;
  std::fill_n(out_packed, few_channels_weight_elements<BFloat16>(g), BFloat16{});
  const std::int64_t lines = g.channels * g.kernel_height, elements = pixel_elements(g);
  for (std::int64_t column = 0; column < g.out_channels; ++column) {
    BFloat16* const panel = out_packed + column / columns * panel_step<BFloat16>(depth(g)) + column % columns * group;
    for (std::int64_t i = 0; i < lines; ++i) {
      for (std::int64_t b = 0; b < g.kernel_width; ++b) {
        const std::int64_t k = b * elements + i;
        panel[k / group * (columns * group) + k % group] = w[(column * lines + i) * g.kernel_width + b];
      }
    }
  }
}

template <>
std::size_t few_channels_scratch<BFloat16>(const ConvGeometry& g, const sdk::Host& host) {
  if (g.empty()) return 0;
  return static_cast<std::size_t>(worker_count(host, g.images * g.out_height)) * Memory(g).per_worker();
}

template <>
void few_channels_conv(const ConvGeometry& g, const DirectOperands<BFloat16>& o, const sdk::Host& host, char* scratch) {
  if (g.empty()) return;
  const Memory memory(g);
  PanelProduct<BFloat16> product;
  product.rows = g.out_width;
  product.k = depth(g);
  product.columns = g.out_channels;
  product.a_step = g.stride_width * pixel_elements(g);
  product.panels = o.panels;
  product.y_step = g.out_channels;
  product.bias = o.bias;
  product.activation = o.activation;
  const std::int64_t blocks = sdk::ceil_div(g.out_height, task_lines);
  for_each_task(host, g.images * blocks, [&](std::int64_t task, std::int64_t worker) {
    char* const mine = scratch + static_cast<std::size_t>(worker) * memory.per_worker();
    BFloat16* const lines = reinterpret_cast<BFloat16*>(mine);
    BFloat16* const zeros = reinterpret_cast<BFloat16*>(mine + memory.lines_size);
    const auto sources = reinterpret_cast<const BFloat16**>(mine + memory.lines_size + memory.zeros_size);
    std::fill_n(zeros, g.width, BFloat16{});
    const std::int64_t image = task / blocks, first = task % blocks * task_lines;
    for (std::int64_t row = first; row < std::min(g.out_height, first + task_lines); ++row) {
      interleave(g, o.x + image * g.channels * g.pixels(), row, zeros, sources, lines);
      const std::int64_t at = (image * g.out_height + row) * g.out_width * g.out_channels;
      PanelProduct<BFloat16> line = product;
      line.a = lines;
      line.y = o.y + at;
      if (o.residual != nullptr) line.residual = o.residual + at;
      multiply_panels(line);
    }
  });
}

}  // namespace tenon::openblas
