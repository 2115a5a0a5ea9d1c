// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_few_channels.h"

#include <algorithm>
#include <type_traits>

#include "elementwise/half.h"
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

template <class T>
void copy_line(const T* from, float* to, std::int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    std::copy_n(from, n, to);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
  }
}

/// Copies the lines of one image x for the results from line `row` on.
template <class T>
void fill_band(const ConvGeometry& g, const Band& band, const T* x, std::int64_t row, float* out) {
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
      copy_line(x + (c * g.height + line) * g.width, out + before, n);
      std::fill_n(out + before + n, band.width - before - n, 0.0f);
    }
  }
}

/// The memory of one worker. Results of bf16 are written as f32 first, as are the bias and the residual.
template <class T>
struct Memory {
  static constexpr bool converts = !std::is_same_v<T, float>;
  Memory(const ConvGeometry& g, const Band& band)
      : band_size(scratch_bytes(g.channels * band.lines * band.width, sizeof(float))),
        row_size(converts ? scratch_bytes(g.out_width * g.out_channels, sizeof(float)) : 0) {}
  std::size_t band_size, row_size;
  std::size_t per_worker() const { return band_size + 2 * row_size; }
};

/// One line of results.
template <class T>
void multiply_line(PanelProduct<float> product, const DirectOperands<T>& o, std::int64_t at, float* row, float* residual) {
  const std::int64_t n = product.rows * product.columns;
  if constexpr (std::is_same_v<T, float>) {
    product.y = o.y + at;
    if (o.residual != nullptr) product.residual = o.residual + at;
    multiply_panels(product);
  } else {
    product.y = row;
    if (o.residual != nullptr) {
      copy_line(o.residual + at, residual, n);
      product.residual = residual;
    }
    multiply_panels(product);
    for (std::int64_t i = 0; i < n; ++i) o.y[at + i] = rounded_to<T>(row[i]);
  }
}

}  // namespace

bool is_of_few_channels(tenon_dtype dtype, const sdk::Operand& w, std::int64_t groups) {
  if ((dtype != TENON_DTYPE_F32 && dtype != TENON_DTYPE_BF16) || w.rank != 4 || groups != 1) return false;
  const std::int64_t k = w.shape[1] * w.shape[2] * w.shape[3];
  return w.shape[1] <= max_channels && k > 0 && k <= max_indirect_k;
}

template <class T>
std::int64_t few_channels_weight_elements(const ConvGeometry& g) {
  return panel_elements<float>(depth(g), g.out_channels) * static_cast<std::int64_t>(sizeof(float) / sizeof(T));
}

template <class T>
void few_channels_weights(const ConvGeometry& g, const T* w, T* out_packed) {
  const std::int64_t k = depth(g);
  float* const out = reinterpret_cast<float*>(out_packed);
  for (std::int64_t panel = 0; panel < panel_count<float>(g.out_channels); ++panel) {
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t j = 0; j < panel_width<float>; ++j) {
        const std::int64_t column = panel * panel_width<float> + j;
        out[(panel * k + i) * panel_width<float> + j] = column < g.out_channels ? number_of(w[column * k + i]) : 0.0f;
      }
    }
  }
}

template <class T>
std::size_t few_channels_scratch(const ConvGeometry& g, const sdk::Host& host) {
  if (g.empty()) return 0;
  const std::int64_t workers = worker_count(host, g.images * g.out_height);
  return scratch_bytes(depth(g), sizeof(std::int32_t)) + scratch_bytes(g.out_channels, sizeof(float)) +
         static_cast<std::size_t>(workers) * Memory<T>(g, Band(g, workers)).per_worker();
}

template <class T>
void few_channels_conv(const ConvGeometry& g, const DirectOperands<T>& o, const sdk::Host& host, char* scratch) {
  if (g.empty()) return;
  const std::int64_t workers = worker_count(host, g.images * g.out_height);
  const Band band(g, workers);
  const Memory<T> memory(g, band);
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
  product.panels = reinterpret_cast<const float*>(o.panels);
  product.y_step = g.out_channels;
  product.activation = o.activation;
  if (o.bias != nullptr) {
    float* const bias = reinterpret_cast<float*>(scratch);
    copy_line(o.bias, bias, g.out_channels);
    product.bias = bias;
  }
  scratch += scratch_bytes(g.out_channels, sizeof(float));
  const std::int64_t bands = sdk::ceil_div(g.out_height, band.rows);
  for_each_task(host, g.images * bands, [&](std::int64_t task, std::int64_t worker) {
    char* const mine = scratch + static_cast<std::size_t>(worker) * memory.per_worker();
    float* const lines = reinterpret_cast<float*>(mine);
    float* const row_of_results = reinterpret_cast<float*>(mine + memory.band_size);
    float* const residual = reinterpret_cast<float*>(mine + memory.band_size + memory.row_size);
    const std::int64_t image = task / bands, first = task % bands * band.rows;
    fill_band(g, band, o.x + image * g.channels * g.pixels(), first, lines);
    for (std::int64_t row = first; row < std::min(g.out_height, first + band.rows); ++row) {
      PanelProduct<float> line = product;
      line.a = lines + (row - first) * g.stride_height * band.width;
      multiply_line(line, o, (image * g.out_height + row) * g.out_width * g.out_channels, row_of_results, residual);
    }
  });
}

template std::int64_t few_channels_weight_elements<sdk::BFloat16>(const ConvGeometry&);
template std::int64_t few_channels_weight_elements<float>(const ConvGeometry&);
template void few_channels_weights(const ConvGeometry&, const sdk::BFloat16*, sdk::BFloat16*);
template void few_channels_weights(const ConvGeometry&, const float*, float*);
template std::size_t few_channels_scratch<sdk::BFloat16>(const ConvGeometry&, const sdk::Host&);
template std::size_t few_channels_scratch<float>(const ConvGeometry&, const sdk::Host&);
template void few_channels_conv(const ConvGeometry&, const DirectOperands<sdk::BFloat16>&, const sdk::Host&, char*);
template void few_channels_conv(const ConvGeometry&, const DirectOperands<float>&, const sdk::Host&, char*);

}  // namespace tenon::openblas
