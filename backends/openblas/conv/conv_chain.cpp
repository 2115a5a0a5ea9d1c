// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_chain.h"

#include <algorithm>

#include <tenon/sdk/rounding.h>

#include "conv/conv_depthwise_tiles.h"
#include "gemm/panels.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

// Bytes of lines and rows between the convolutions, which stay in an L2 of 1 MiB while panels are read from it.
constexpr std::int64_t near_bytes = 640 * 1024;
// The most rows of the depthwise convolution that are computed before they are multiplied.
constexpr std::int64_t max_rows = 8;
// Bytes of the weights of a 1x1 convolution that are read again for each few rows.
constexpr std::int64_t near_weight_bytes = 256 * 1024;
// Results between two convolutions of fewer bytes stay in the L2 of each core anyway.
constexpr std::int64_t far_bytes = 512 * 1024;
// One line in this many may be expanded twice, for two bands.
constexpr std::int64_t lines_per_repeated = 16;

/// How a chain is divided.
struct Division {
  std::int64_t workers = 1;
  std::int64_t bands = 1;  ///< of an image
  std::int64_t rows = 1;   ///< of the depthwise convolution, computed before they are multiplied
  std::int64_t lines = 0;  ///< of the expanded image, kept for these rows
  std::int64_t bytes = 0;  ///< of lines and rows
};

Division division_of(const ChainSizes& sizes, const sdk::Host& host) {
  const ConvGeometry& g = sizes.depthwise;
  Division division;
  division.workers = worker_count(host, g.images * g.out_height);
  if (g.images % division.workers != 0) division.bands = std::min(division.workers, g.out_height);
  const auto size = static_cast<std::int64_t>(sizes.element_size);
  const std::int64_t line_bytes = sizes.in_channels == 0 ? 0 : g.width * g.channels * size;
  const std::int64_t row_bytes = sizes.out_channels == 0 ? 0 : g.out_width * g.channels * size;
  const std::int64_t left = near_bytes - (g.kernel_height - g.stride_height) * line_bytes;
  division.rows = std::clamp<std::int64_t>(left / std::max<std::int64_t>(1, g.stride_height * line_bytes + row_bytes), 1, max_rows);
  if (sizes.in_channels != 0) division.lines = (division.rows - 1) * g.stride_height + g.kernel_height;
  division.bytes = division.lines * line_bytes + division.rows * row_bytes;
  return division;
}

template <class T>
ChainSizes sizes_of(const ConvChain<T>& chain) {
  return {chain.depthwise, chain.expand == nullptr ? 0 : chain.expand->channels, chain.project == nullptr ? 0 : chain.project->out_channels,
          sizeof(T)};
}

/// Multiplies `rows` pixels at a by the weights of a 1x1 convolution.
template <class T>
void multiply(const PointwiseStage<T>& stage, const T* a, std::int64_t rows, T* y, const T* residual) {
  PanelProduct<T> p;
  p.rows = rows;
  p.k = stage.channels;
  p.columns = stage.out_channels;
  p.a = a;
  p.a_step = stage.channels;
  p.panels = stage.operands.panels;
  p.y = y;
  p.y_step = stage.out_channels;
  p.bias = stage.operands.bias;
  p.residual = residual;
  p.activation = stage.operands.activation;
  multiply_panels(p);
}

/// Rows [first_row, end_row) of one image.
template <class T>
void run_band(const ConvChain<T>& chain, const Division& division, const PixelMeans& means, std::int64_t image, std::int64_t first_row,
              std::int64_t end_row, T* lines, T* rows) {
  const ConvGeometry& g = chain.depthwise;
  const PointwiseStage<T>* const expand = chain.expand;
  const PointwiseStage<T>* const project = chain.project;
  const std::int64_t line_step = g.width * g.channels;
  DepthwiseBand<T> band;
  band.g = &g;
  band.x = expand == nullptr ? chain.x + image * g.pixels() * g.channels : lines;
  band.ring_lines = division.lines;
  band.w = chain.w;
  band.bias = chain.bias;
  band.activation = chain.activation;
  band.end_channel = g.channels;
  means.describe(band, image);
  std::int64_t line = std::clamp<std::int64_t>(first_row * g.stride_height - g.pad_top, 0, g.height);  // the next one to expand
  for (std::int64_t row = first_row; row < end_row; row = band.end_row) {
    band.first_row = row;
    band.end_row = std::min(end_row, row + division.rows);
    const std::int64_t end_line = std::min(g.height, (band.end_row - 1) * g.stride_height - g.pad_top + g.kernel_height);
    while (expand != nullptr && line < end_line) {
      const std::int64_t at = line % division.lines, n = std::min(end_line - line, division.lines - at);
      const T* const x = expand->operands.x + (image * g.height + line) * g.width * expand->channels;
      multiply<T>(*expand, x, n * g.width, lines + at * line_step, nullptr);
      line += n;
    }
    band.y_row = project == nullptr ? 0 : row;
    band.y = project == nullptr ? chain.y + image * g.out_pixels() * g.channels : rows;
    depthwise_band(band);
    if (project == nullptr) continue;
    const std::int64_t at = (image * g.out_height + row) * g.out_width * project->out_channels;
    const T* const residual = project->operands.residual;
    multiply<T>(*project, rows, (band.end_row - row) * g.out_width, project->operands.y + at,
                residual == nullptr ? nullptr : residual + at);
  }
}

}  // namespace

bool chain_pays(const ChainSizes& sizes, const sdk::Host& host) {
  const ConvGeometry& g = sizes.depthwise;
  const Division division = division_of(sizes, host);
  const auto size = static_cast<std::int64_t>(sizes.element_size);
  if (std::max(sizes.in_channels, sizes.out_channels) * g.channels * size > near_weight_bytes) return false;
  if (division.bytes > near_bytes) return false;  // a single row is too long
  if (sizes.in_channels != 0) {
    if (division.workers * division.lines > g.images * g.height) return false;
    if (division.bands > 1 && (division.bands - 1) * (g.kernel_height - g.stride_height) * lines_per_repeated > g.height) return false;
  }
  if (sizes.out_channels != 0 && division.workers * division.rows > g.images * g.out_height) return false;
  const std::int64_t between = sizes.in_channels != 0 ? g.pixels() : g.out_pixels();
  return g.images * between * g.channels * size > division.workers * far_bytes;
}

ChainMemory chain_memory(const ChainSizes& sizes, const sdk::Host& host) {
  const ConvGeometry& g = sizes.depthwise;
  const Division division = division_of(sizes, host);
  const std::int64_t of_channels = division.workers * g.channels * static_cast<std::int64_t>(sizes.element_size);
  ChainMemory memory;
  memory.lines = static_cast<std::size_t>(of_channels * division.lines * g.width);
  if (sizes.out_channels != 0) memory.rows = static_cast<std::size_t>(of_channels * division.rows * g.out_width);
  return memory;
}

template <class T>
void conv_chain(const ConvChain<T>& chain, const sdk::Host& host) {
  const ConvGeometry& g = chain.depthwise;
  const Division division = division_of(sizes_of(chain), host);
  const PixelMeans means(g, *chain.call, chain.means_scratch);
  for_each_task(host, g.images * division.bands, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t image = task / division.bands, band = task % division.bands;
    // The memory of the results between: those of all images.
    T* const lines = const_cast<T*>(chain.x) + worker * division.lines * g.width * g.channels;
    T* const rows = chain.y + worker * division.rows * g.out_width * g.channels;
    run_band(chain, division, means, image, means.first_row(band * g.out_height / division.bands),
             means.first_row((band + 1) * g.out_height / division.bands), lines, rows);
  });
  means.finish();
}

template void conv_chain(const ConvChain<sdk::BFloat16>&, const sdk::Host&);
template void conv_chain(const ConvChain<float>&, const sdk::Host&);
template void conv_chain(const ConvChain<double>&, const sdk::Host&);

}  // namespace tenon::openblas
