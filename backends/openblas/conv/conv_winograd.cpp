// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_winograd.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <tenon/sdk/rounding.h>

#include "conv/conv_geometry.h"
#include "conv/winograd_tiles.h"
#include "conv/winograd_weights.h"
#include "gemm/panels.h"
#include "workers.h"

namespace tenon::openblas {
namespace {

/// The product for one sum of the tiles: its matrix x (tiles, k) and its weights (k, out_channels).
struct Sum {
  std::int64_t k = 0;                 ///< channels of all its values
  std::int64_t x_at = 0, x_step = 0;  ///< of x, elements
  std::int64_t weights_at = 0;        ///< elements
};

/// How tiles are divided. It depends on the sizes and the number of threads, but changes no bit of the result.
struct Layout {
  bool shared = false;                 ///< all threads work on one block, step by step; else each has its own blocks
  std::int64_t blocks = 1, block = 1;  ///< of nearly equal numbers of tiles; the largest number
  std::int64_t workers = 1;
  std::int64_t x_elements = 0, y_step = 0, y_plane = 0, zeros = 0;
  std::int64_t sum_count = 0;
  std::array<Sum, winograd_max_values> sums{};

  std::int64_t block_elements() const { return x_elements + sum_count * y_plane; }
  std::int64_t elements() const { return zeros + block_elements() * (shared ? 1 : workers); }
};

/// Floats between matrices, padded so that the values of a tile map to different L1 cache sets.
std::int64_t plane_of(std::int64_t elements) {
  return sdk::round_up(elements, 1024) + 48;
}

// Bytes of a block's matrices, which stay in L2.
constexpr std::int64_t block_bytes = 1200 * 1024;
// Tiles of a block whose products take as long as reading weights that are shared, or distant ones.
constexpr std::int64_t shared_tiles = 28;
constexpr std::int64_t distant_tiles = 64;
// Panels of a sum that are worth a task.
constexpr std::int64_t task_panels = 2;

/// Floats between the rows of x of a sum.
std::int64_t x_step_of(std::int64_t k) {
  const std::int64_t step = sdk::round_up(k, 16);
  return step % 1024 == 0 ? step + 16 : step;
}

Layout layout_of(const WinogradConv& conv, const sdk::Host& host) {
  Layout layout;
  const std::int64_t tiles = conv.tiles();
  layout.sum_count = conv.points() * conv.points();
  layout.y_step = panel_count<float>(conv.out_channels) * panel_width<float>;
  layout.zeros = sdk::round_up(conv.channels, 16);
  std::int64_t tile_elements = layout.sum_count * layout.y_step;
  const std::array<WinogradMatrix, winograd_max_values> matrices = winograd_matrices(conv);
  for (std::int64_t i = 0; i < layout.sum_count; ++i) {
    Sum& sum = layout.sums[static_cast<std::size_t>(i)];
    sum.k = matrices[static_cast<std::size_t>(i)].k;
    sum.weights_at = matrices[static_cast<std::size_t>(i)].at;
    sum.x_step = x_step_of(sum.k);
    tile_elements += sum.x_step;
  }
  const std::int64_t fitting = std::max<std::int64_t>(14, block_bytes / 4 / tile_elements / 14 * 14);
  const std::int64_t weights = winograd_weight_bytes(conv);
  layout.shared = weights > shared_winograd_weights;
  if (layout.shared) {
    layout.blocks = sdk::ceil_div(tiles, weights > distant_winograd_weights ? distant_tiles : shared_tiles);
  } else {
    // As many blocks for each thread, of nearly equal sizes: several smaller ones only if that does not make their rows few.
    layout.workers = worker_count(host, (tiles + 13) / 14);
    const std::int64_t wanted = std::clamp<std::int64_t>(tiles / 28, layout.workers, 4 * layout.workers);
    layout.blocks = std::min(tiles, sdk::round_up(std::max(wanted, sdk::ceil_div(tiles, fitting)), layout.workers));
  }
  layout.block = sdk::ceil_div(tiles, std::max<std::int64_t>(1, layout.blocks));
  for (Sum& sum : layout.sums) {
    sum.x_at = layout.x_elements;
    if (sum.k > 0) layout.x_elements += plane_of(layout.block * sum.x_step);
  }
  layout.y_plane = plane_of(layout.block * layout.y_step);
  return layout;
}

WinogradTileMemory memory_of(const WinogradConv& conv, const Layout& layout, float* scratch, std::int64_t worker) {
  float* const mine = scratch + layout.zeros + worker * layout.block_elements();
  WinogradTileMemory memory{mine, mine + layout.x_elements, scratch, {}, {}, layout.y_step, layout.y_plane};
  for_each_winograd_value(conv, [&](std::int64_t value, std::int64_t i, std::int64_t j, std::int64_t part) {
    const Sum& sum = layout.sums[static_cast<std::size_t>(i * conv.points() + j)];
    memory.value_at[static_cast<std::size_t>(value)] = sum.x_at + part * conv.channels;
    memory.x_step[static_cast<std::size_t>(value)] = sum.x_step;
  });
  return memory;
}

/// Panels [panel, end) of sum `index` of the tiles in memory, before the panels at `next`.
void multiply(const Layout& layout, const float* weights, const WinogradTileMemory& memory, std::int64_t index, std::int64_t tiles,
              std::int64_t panel, std::int64_t end, const float* next) {
  const Sum& sum = layout.sums[static_cast<std::size_t>(index)];
  PanelProduct<float> product;
  product.rows = tiles;
  product.k = sum.k;
  product.columns = (end - panel) * panel_width<float>;
  product.a = memory.x + sum.x_at;
  product.a_step = sum.x_step;
  product.panels = weights + sum.weights_at + panel * panel_step<float>(sum.k);
  product.next_panels = next;
  product.y = memory.y + index * memory.y_plane + panel * panel_width<float>;
  product.y_step = memory.y_step;
  multiply_panels(product);
}

template <class T>
void by_blocks(const WinogradConv& conv, const WinogradOperands<T>& operands, const Layout& layout, const sdk::Host& host, float* scratch) {
  const std::int64_t tiles = conv.tiles(), panels = panel_count<float>(conv.out_channels);
  for_each_task(host, layout.blocks, [&](std::int64_t block, std::int64_t worker) {
    const WinogradTileMemory memory = memory_of(conv, layout, scratch, worker);
    const std::int64_t begin = block * tiles / layout.blocks, end = (block + 1) * tiles / layout.blocks;
    winograd_input_tiles(conv, operands.x, memory, begin, begin, end);
    for (std::int64_t i = 0; i < layout.sum_count; ++i) {
      const Sum& next = layout.sums[static_cast<std::size_t>((i + 1) % layout.sum_count)];
      multiply(layout, operands.weights, memory, i, end - begin, 0, panels, operands.weights + next.weights_at);
    }
    winograd_output_tiles(conv, operands, memory, begin, begin, end);
  });
}

/// For large weights: threads divide the panels of all sums of a block, and read each weight once for all of its tiles.
template <class T>
void by_steps(const WinogradConv& conv, const WinogradOperands<T>& operands, const Layout& layout, const sdk::Host& host, float* scratch) {
  const std::int64_t tiles = conv.tiles(), panels = panel_count<float>(conv.out_channels);
  const std::int64_t tasks_of_sum = sdk::ceil_div(panels, task_panels), tasks = layout.sum_count * tasks_of_sum;
  const WinogradTileMemory memory = memory_of(conv, layout, scratch, 0);
  for (std::int64_t block = 0; block < layout.blocks; ++block) {
    const std::int64_t first = block * tiles / layout.blocks, last = (block + 1) * tiles / layout.blocks;
    host.parallel_for(last - first, 1, [&](std::int64_t begin, std::int64_t end) {
      winograd_input_tiles(conv, operands.x, memory, first, first + begin, first + end);
    });
    for_each_task(host, tasks, [&](std::int64_t task, std::int64_t) {
      const std::int64_t sum = task / tasks_of_sum, panel = task % tasks_of_sum * task_panels, end = std::min(panels, panel + task_panels);
      // The panels of the next task follow in memory.
      const float* const next = operands.weights + layout.sums[static_cast<std::size_t>(sum)].weights_at +
                                end * panel_step<float>(layout.sums[static_cast<std::size_t>(sum)].k);
      multiply(layout, operands.weights, memory, sum, last - first, panel, end, task + 1 < tasks ? next : nullptr);
    });
    host.parallel_for(last - first, 1, [&](std::int64_t begin, std::int64_t end) {
      winograd_output_tiles(conv, operands, memory, first, first + begin, first + end);
    });
  }
}

}  // namespace

std::size_t winograd_scratch(const WinogradConv& conv, const sdk::Host& host) {
  return scratch_bytes(layout_of(conv, host).elements(), sizeof(float));
}

template <class T>
void winograd_conv(const WinogradConv& conv, const WinogradOperands<T>& operands, const sdk::Host& host, void* scratch) {
  if (conv.tiles() == 0 || conv.out_channels == 0) return;
  const Layout layout = layout_of(conv, host);
  float* const memory = static_cast<float*>(scratch);
  std::memset(memory, 0, static_cast<std::size_t>(layout.zeros) * sizeof(float));  // zeros of any type
  if (layout.shared) {
    by_steps(conv, operands, layout, host, memory);
  } else {
    by_blocks(conv, operands, layout, host, memory);
  }
}

template void winograd_conv(const WinogradConv&, const WinogradOperands<sdk::BFloat16>&, const sdk::Host&, void*);
template void winograd_conv(const WinogradConv&, const WinogradOperands<float>&, const sdk::Host&, void*);

}  // namespace tenon::openblas
