// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_few_channels.h"

#include <algorithm>

#include "gemm/panels.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

// Channels of images whose convolutions would gather runs of a few elements.
constexpr std::int64_t max_channels = 4;
// Bytes of the lines of x that a task copies: they stay in L2 beside the weights.
constexpr std::int64_t band_bytes = 128 * 1024;
// Tasks per thread, if the image has so many lines.
constexpr std::int64_t tasks_per_worker = 8;

/// The lines of x under `rows` lines of results, padded, as f32: (C, lines, width). Element k of a result's sum is then at a fixed distance
/// from the first one.
struct Band {
  explicit Band(const ConvGeometry& g, std::int64_t workers) {
    width = (g.out_width - 1) * g.stride_width + (g.kernel_width - 1) * g.dilation_width + 1;
    const std::int64_t kernel_lines = (g.kernel_height - 1) * g.dilation_height + 1;
    const std::int64_t line_bytes = g.channels * width * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t fitting = (band_bytes / line_bytes - kernel_lines) / g.stride_height + 1;
    const std::int64_t fair = sdk::ceil_div(g.images * g.out_height, tasks_per_worker * workers);
    rows = std::clamp<std::int64_t>(std::min(fitting, fair), 1, g.out_height);
    lines = (rows - 1) * g.stride_height + kernel_lines;
  }
  std::int64_t rows, lines, width;
};

std::int64_t depth(const ConvGeometry& g) {
  return g.channels * g.taps();
}

/// Copies the lines of one image x for the results from line `row` on.
void fill_band(const ConvGeometry& g, const Band& band, const float* x, std::int64_t row, float* out) {
  const std::int64_t before = std::min(g.pad_left, band.width);
  const std::int64_t n = std::clamp<std::int64_t>(band.width - before, 0, g.width);
  for (std::int64_t c = 0; c < g.channels; ++c) {
    for (std::int64_t i = 0; i < band.lines; ++i, out += band.width) {
      const std::int64_t line = row * g.stride_height - g.pad_top + i;
      if (line < 0 || line >= g.height) {
        std::fill_n(out, band.width, 0.0f);
        continue;
      }
      std::fill_n(out, before, 0.0f);
      std::copy_n(x + (c * g.height + line) * g.width, n, out + before);
      std::fill_n(out + before + n, band.width - before - n, 0.0f);
    }
  }
}

std::size_t band_size(const ConvGeometry& g, const Band& band) {
  return scratch_bytes(g.channels * band.lines * band.width, sizeof(float));
}

}  // namespace

bool is_of_few_channels(tenon_dtype dtype, const sdk::Operand& w, const tenon_attributes_conv& attributes) {
  const bool neighbours = attributes.dilations[1] == 1;  // the pixels of a row of the product
  if (dtype != TENON_DTYPE_F32 && !(dtype == TENON_DTYPE_BF16 && neighbours)) return false;
  if (w.rank != 4 || attributes.groups != 1) return false;
  const std::int64_t k = w.shape[1] * w.shape[2] * w.shape[3];
  return w.shape[1] <= max_channels && k > 0 && k <= max_indirect_k;
}

template <>
std::int64_t few_channels_weight_elements<float>(const ConvGeometry& g) {
  return panel_elements<float>(depth(g), g.out_channels);
}

template <>
void few_channels_weights(const ConvGeometry& g, const float* w, float* out_packed) {
  const std::int64_t k = depth(g);
  for (std::int64_t panel = 0; panel < panel_count<float>(g.out_channels); ++panel) {
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t j = 0; j < panel_width<float>; ++j) {
        const std::int64_t column = panel * panel_width<float> + j;
        out_packed[(panel * k + i) * panel_width<float> + j] = column < g.out_channels ? w[column * k + i] : 0.0f;
      }
    }
  }
}

template <>
std::size_t few_channels_scratch<float>(const ConvGeometry& g, const sdk::Host& host) {
  if (g.empty()) return 0;
  const std::int64_t workers = worker_count(host, g.images * g.out_height);
  return scratch_bytes(depth(g), sizeof(std::int32_t)) + static_cast<std::size_t>(workers) * band_size(g, Band(g, workers));
}

template <>
void few_channels_conv(const ConvGeometry& g, const DirectOperands<float>& o, const sdk::Host& host, char* scratch) {
  if (g.empty()) return;
  const std::int64_t workers = worker_count(host, g.images * g.out_height);
  const Band band(g, workers);
  std::int32_t* const offsets = reinterpret_cast<std::int32_t*>(scratch);
  for (std::int64_t k = 0; k < depth(g); ++k) {
    const std::int64_t c = k / g.taps(), a = k / g.kernel_width % g.kernel_height, b = k % g.kernel_width;
    offsets[k] = static_cast<std::int32_t>((c * band.lines + a * g.dilation_height) * band.width + b * g.dilation_width);
  }
  scratch += scratch_bytes(depth(g), sizeof(std::int32_t));
  PanelProduct<float> product;
  product.rows = g.out_width;
  product.k = depth(g);
  product.columns = g.out_channels;
  product.a_step = g.stride_width;
  product.a_offsets = offsets;
  product.panels = o.panels;
  product.y_step = g.out_channels;
  product.bias = o.bias;
  product.activation = o.activation;
  const std::int64_t bands = sdk::ceil_div(g.out_height, band.rows);
  for_each_task(host, g.images * bands, [&](std::int64_t task, std::int64_t worker) {
    float* const lines = reinterpret_cast<float*>(scratch + static_cast<std::size_t>(worker) * band_size(g, band));
    const std::int64_t image = task / bands, first = task % bands * band.rows;
    fill_band(g, band, o.x + image * g.channels * g.pixels(), first, lines);
    for (std::int64_t row = first; row < std::min(g.out_height, first + band.rows); ++row) {
      const std::int64_t at = (image * g.out_height + row) * g.out_width * g.out_channels;
      PanelProduct<float> line = product;
      line.a = lines + (row - first) * g.stride_height * band.width;
      line.y = o.y + at;
      if (o.residual != nullptr) line.residual = o.residual + at;
      multiply_panels(line);
    }
  });
}

}  // namespace tenon::openblas
