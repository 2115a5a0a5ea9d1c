// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_conv_layout.h"

#include <algorithm>

#include <tenon/sdk/rounding.h>

#include "conv/conv_direct_forms.h"
#include "quantize/integer_depthwise.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

// Bytes of gathered rows that stay in L2 while panels stream through it.
constexpr std::int64_t block_bytes = 256 * 1024;
// Blocks have a multiple of this number of rows: whole tiles of AMX.
constexpr std::int64_t row_multiple = 32;
// Rows of a block of lines: more where pixels have few channels, because the fewer lines of results a block has, the more of its lines are
// copied for another block, too.
constexpr std::int64_t line_block_rows = 256, thin_line_block_rows = 512;
// Rows of a line that are worth copying lines: a tile of the largest height. Below, gathered rows have higher tiles.
constexpr std::int64_t min_line_rows = 14;
// Rows of a thread that are worth reading all weights.
constexpr std::int64_t min_thread_rows = 84;
// Multiply-adds worth handing to a thread: about 1 us of AVX-512 VNNI.
constexpr std::int64_t smallest_piece = 400'000;

/// Bytes of all rows up to which threads may share them.
constexpr std::int64_t shared_rows_bytes = 1024 * 1024;

/// Whether the tile registers read taps from bands of the image, instead of rows that are gathered. Weights are then packed in the order
/// for bands.
bool by_bands(const ConvGeometry& g, const IntegerOperands& at, const sdk::Host& host) {
  const DirectConv conv = forward_conv(g);
  return at.requantised && !g.depthwise() && suits_bands(conv, 1) &&
         integer_tiles_take_offsets(instruction_set_of(host), min_band_rows(conv, 1));
}

/// The parts of rows that are read from copied lines, for convolutions of several taps with lines that tiles divide well. Pixels have a
/// multiple of 64 bytes, or so few that those of a line of taps are one part with little padding, as in the first layer of a net: 21 of 24
/// bytes for 7 taps of 3 channels.
IntegerRowParts line_parts(const ConvGeometry& g, const sdk::Host& host) {
  if (g.depthwise() || g.taps() <= 1 || g.out_width < min_line_rows || !integer_tiles_take_lines(instruction_set_of(host))) return {};
  if (g.group_channels() % integer_part_bytes == 0) return {g.k() / integer_part_bytes, integer_part_bytes, integer_part_bytes};
  const std::int64_t filled = g.kernel_width * g.channels, size = sdk::round_up(filled, integer_group);
  if (g.groups > 1 || g.dilation_width > 1 || filled > integer_part_bytes || 3 * size > 4 * filled) return {};
  return {g.kernel_height, size, filled};
}

/// Whether rows are read from lines of the image. Weights with padding between lines of taps have no other use; others may be shared by
/// threads that have few rows for them.
bool by_lines(const ConvGeometry& g, const sdk::Host& host) {
  if (line_parts(g, host).count == 0) return false;
  return integer_line_step(g, host) != 0 || !integer_row_layout(g, host).by_panels || g.rows() >= min_thread_rows * host.thread_count();
}

}  // namespace

IntegerRows integer_rows(const ConvGeometry& g, const IntegerOperands& at, const sdk::Host& host) {
  if (by_bands(g, at, host)) return IntegerRows::bands;
  return by_lines(g, host) ? IntegerRows::lines : IntegerRows::memory;
}

std::int64_t integer_line_step(const ConvGeometry& g, const sdk::Host& host) {
  return g.group_channels() % integer_part_bytes == 0 ? 0 : line_parts(g, host).size;
}

std::int64_t integer_conv_packed_k(const ConvGeometry& g, const sdk::Host& host) {
  const std::int64_t step = integer_line_step(g, host);
  return step == 0 ? g.k() : g.kernel_height * step;
}

std::size_t integer_conv_weight_bytes(const ConvGeometry& g, const sdk::Host& host) {
  const std::size_t bytes =
      g.depthwise() ? integer_depthwise_weight_bytes(g)
                    : static_cast<std::size_t>(g.groups) * integer_panels_bytes(integer_conv_packed_k(g, host), g.group_out_channels());
  return sdk::aligned_size(bytes, sdk::block_alignment);
}

IntegerRowLayout integer_row_layout(const ConvGeometry& g, const sdk::Host& host) {
  IntegerRowLayout layout;
  const std::int64_t rows = g.rows();
  layout.workers = worker_count(host, rows);
  layout.step = padded_k(g.k());
  // Rows a multiple of 4 KiB apart would map to the same L1 cache set.
  if (layout.step % 4096 == 0) layout.step += 64;
  const std::int64_t fitting = std::max(row_multiple, block_bytes / layout.step / row_multiple * row_multiple);
  const std::int64_t fair = sdk::round_up(sdk::ceil_div(rows, 8 * layout.workers), row_multiple);
  const std::int64_t row_work = g.k() * g.out_channels;
  const std::int64_t worthwhile = sdk::round_up(smallest_piece / std::max<std::int64_t>(1, row_work) + 1, row_multiple);
  layout.block = std::min({fitting, std::max(fair, worthwhile), std::max<std::int64_t>(rows, 1)});
  const bool parts = padded_columns(g.out_channels) / integer_panel_width >= 2 * layout.workers;
  layout.by_panels = g.groups == 1 && parts && rows < g.out_channels && rows * layout.step <= shared_rows_bytes && host.thread_count() > 1;
  if (layout.by_panels) {
    layout.block = rows;
    layout.workers = 1;
  }
  return layout;
}

IntegerLineLayout::IntegerLineLayout(const ConvGeometry& g, const sdk::Host& host) : parts(line_parts(g, host)) {
  width = (g.out_width - 1) * g.stride_width + (g.kernel_width - 1) * g.dilation_width + 1;
  step = width * g.channels + parts.size - parts.filled;
  const std::int64_t lines = g.images * g.out_height, threads = std::max<std::int64_t>(1, host.thread_count());
  const std::int64_t rows = integer_line_step(g, host) == 0 ? line_block_rows : thin_line_block_rows;
  const std::int64_t target = sdk::round_up(sdk::ceil_div(lines * g.out_width, rows), threads);
  blocks = std::clamp<std::int64_t>(target, 1, std::max<std::int64_t>(1, lines));
  height = sdk::ceil_div(lines, blocks);
  workers = worker_count(host, blocks);
}

}  // namespace tenon::openblas
