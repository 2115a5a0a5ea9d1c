// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_weight_grad_winograd.h"

#include "gemm/panels.h"
#include "simd/foreach_target.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>

#include <tenon/sdk/rounding.h>

#include "conv/winograd_geometry.h"
#include "conv/winograd_transforms.h"
#include "elementwise/half.h"
#include "simd/bf16.h"
#include "simd/simd.h"
#include "workers.h"

#ifndef TENON_OPENBLAS_WEIGHT_GRAD_TILES
#define TENON_OPENBLAS_WEIGHT_GRAD_TILES
namespace tenon::openblas {
namespace {
constexpr int tile = 4;                // pixels of dy along a side
constexpr int reach = 6;               // pixels of x under them along a side
constexpr int points = reach * reach;  // elements of a transformed tile
constexpr int kernel = 3;
constexpr std::int64_t cache_line = 64;    // bytes
constexpr std::int64_t channel_step = 16;  // channels are a multiple of this: vectors of every instruction set are full
}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

using Channels = Floats;
using Lanes = hn::Vec<Channels>;

template <int n>
HWY_INLINE void transform(const Lanes (&x)[n], Lanes (&y)[reach]) {
  if constexpr (n == reach) {
    winograd_input(Channels(), x, y);
  } else {
    winograd_output_grad(Channels(), x, y);
  }
}

/// Transforms both sides of a tile of n x n pixels, each a pointer to its channels. The 36 results are `plane` elements apart, and the
/// channels of a panel `panel` elements from those of the next one. Fetches the pixels of the next tile from column n - tile on: those
/// before them are in this tile.
template <int n, class T>
void transform_tile(const T* const* pixels, const T* const* next, std::int64_t channels, float* out, std::int64_t plane,
                    std::int64_t panel) {
  const Channels d;
  constexpr std::int64_t width = panel_width<float>;
  for (std::int64_t c = 0; c < channels; c += lanes(d)) {
    if (c * static_cast<std::int64_t>(sizeof(T)) % cache_line == 0) {
      for (int i = 0; i < n; ++i) {
        for (int j = n - tile; j < n; ++j) hwy::Prefetch(next[i * n + j] + c);
      }
    }
    float* const to = out + c / width * panel + c % width;
    Lanes half[reach][n];
    for (int j = 0; j < n; ++j) {
      Lanes column[n], y[reach];
      for (int i = 0; i < n; ++i) column[i] = load_stored(d, pixels[i * n + j] + c);
      transform(column, y);
      for (int i = 0; i < reach; ++i) half[i][j] = y[i];
    }
    for (int i = 0; i < reach; ++i) {
      Lanes y[reach];
      transform(half[i], y);
      for (int j = 0; j < reach; ++j) hn::StoreU(y[j], d, to + (i * reach + j) * plane);
    }
  }
}

/// dw (channels, 3, 3) from 36 sums per channel, which are `plane` elements apart.
template <class T>
void weight_grad_of_sums(const float* sums, std::int64_t plane, std::int64_t channels, T* dw) {
  const Channels d;
  for (std::int64_t c = 0; c < channels; c += lanes(d)) {
    Lanes half[kernel][reach];
    for (int j = 0; j < reach; ++j) {
      Lanes column[reach], y[kernel];
      for (int i = 0; i < reach; ++i) column[i] = hn::LoadU(d, sums + (i * reach + j) * plane + c);
      winograd_weight_grad(d, column, y);
      for (int i = 0; i < kernel; ++i) half[i][j] = y[i];
    }
    HWY_ALIGN T taps[kernel * kernel * channel_step];
    for (int i = 0; i < kernel; ++i) {
      Lanes y[kernel];
      winograd_weight_grad(d, half[i], y);
      for (int j = 0; j < kernel; ++j) store_rounded(y[j], d, taps + (i * kernel + j) * lanes(d));
    }
    for (std::int64_t k = 0; k < lanes(d); ++k) {
      for (int t = 0; t < kernel * kernel; ++t) dw[(c + k) * kernel * kernel + t] = taps[t * lanes(d) + k];
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

// A task's channels of x and of dy, and the largest number of tiles that it transforms at a time: the transformed tiles and their sums, 36
// planes each, stay in an L2 of 2 MiB, or most of them in one of 1 MiB, and the products are long enough to run at full speed.
constexpr std::int64_t block_channels = 64;
constexpr std::int64_t step_tiles = 72;
constexpr std::int64_t zeros = 2 * block_channels;  // a pixel outside of an image
// The number of tasks of large problems: more than most machines have threads.
constexpr std::int64_t target_tasks = 32;
constexpr std::int64_t smallest_slot = 128;  // tiles that are worth the transform of their sums
// The gap makes planes of any size begin in different L1 cache sets.
constexpr std::int64_t plane_gap = 16;

/// The block size for n channels, with blocks as equal as possible; the other operand has `others` channels.
std::int64_t block_of(std::int64_t n, std::int64_t others) {
  const std::int64_t largest = others <= block_channels / 2 ? 2 * block_channels : block_channels;
  return sdk::ceil_div(sdk::ceil_div(n, sdk::ceil_div(n, largest)), channel_step) * channel_step;
}

}  // namespace

/// The working memory of a task.
struct WeightGradWinograd::Work {
  std::int64_t channel, channels;          ///< of x
  std::int64_t out_channel, out_channels;  ///< of dy
  float* x;                                ///< transformed: 36 of (step_tiles, channels), as panels
  float* dy;                               ///< transformed: 36 of (step_tiles, out_channels)
  float* sums;                             ///< 36 of (out_channels, channels)
  const void* outside;                     ///< as many zeros as channels, of any type
};

bool WeightGradWinograd::pays(const ConvGeometry& g, double direct_cost) {
  if (g.kernel_height != kernel || g.kernel_width != kernel || g.groups != 1) return false;
  if (g.stride_height != 1 || g.stride_width != 1 || g.dilation_height != 1 || g.dilation_width != 1) return false;
  if (g.channels % channel_step != 0 || g.out_channels % channel_step != 0) return false;
  // Tiles across the border are multiplied in full, and the sums of few tiles are not worth their transform.
  const std::int64_t tiles = sdk::ceil_div(g.out_height, tile) * sdk::ceil_div(g.out_width, tile);
  // The transforms take about a third of the time of the products. Direct sums whose operands are f32 in registers
  // take 1.5 times as long as these.
  const double cost = static_cast<double>(tiles * points) * (direct_cost < 1 ? 1.35 : 2);
  return cost <= direct_cost * static_cast<double>(g.out_pixels() * kernel * kernel) && g.images * tiles >= 16;
}

WeightGradWinograd::WeightGradWinograd(const ConvGeometry& g)
    : g_(g),
      tile_rows_(sdk::ceil_div(g.out_height, tile)),
      tile_columns_(sdk::ceil_div(g.out_width, tile)),
      tiles_(g.images * tile_rows_ * tile_columns_),
      channel_block_(block_of(g.channels, g.out_channels)),
      out_block_(block_of(g.out_channels, g.channels)) {
  channel_blocks_ = sdk::ceil_div(g.channels, channel_block_);
  out_blocks_ = sdk::ceil_div(g.out_channels, out_block_);
  const std::int64_t blocks = channel_blocks_ * out_blocks_;
  if (2 * blocks <= target_tasks) slots_ = std::clamp<std::int64_t>(tiles_ / smallest_slot, 1, sdk::ceil_div(target_tasks, blocks));
  slot_tiles_ = sdk::ceil_div(tiles_, slots_);
  slots_ = sdk::ceil_div(tiles_, slot_tiles_);
  x_plane_ = step_tiles * sdk::round_up(channel_block_, panel_width<float>) + plane_gap;
  dy_plane_ = step_tiles * out_block_ + plane_gap;
  sum_plane_ = channel_block_ * out_block_ + plane_gap;
}

std::int64_t WeightGradWinograd::work_size() const {
  return points * (x_plane_ + dy_plane_ + sum_plane_) + zeros;
}

std::size_t WeightGradWinograd::scratch(const sdk::Host& host) const {
  return scratch_bytes(part_size() + worker_count(host, tasks()) * work_size(), sizeof(float));
}

/// Transforms tiles [first, first + count).
template <class T>
void WeightGradWinograd::transform(const Work& work, const T* dy, const T* x, std::int64_t first, std::int64_t count) const {
  const auto x_tile = TENON_DISPATCH(transform_tile<reach, T>);
  const auto dy_tile = TENON_DISPATCH(transform_tile<tile, T>);
  constexpr std::int64_t panel = panel_width<float>;
  struct Pixels {
    const T* x[points];
    const T* dy[tile * tile];
  };
  const auto point_to = [&](std::int64_t t, Pixels& pixels) {
    const std::int64_t image = t / (tile_rows_ * tile_columns_);
    const std::int64_t row = t / tile_columns_ % tile_rows_ * tile;
    const std::int64_t column = t % tile_columns_ * tile;
    const T* const outside = static_cast<const T*>(work.outside);
    find_tile_pixels<reach>(x + work.channel + image * g_.pixels() * g_.channels, g_.height, g_.width, g_.channels, row - g_.pad_top,
                            column - g_.pad_left, outside, pixels.x);
    find_tile_pixels<tile>(dy + work.out_channel + image * g_.out_pixels() * g_.out_channels, g_.out_height, g_.out_width, g_.out_channels,
                           row, column, outside, pixels.dy);
  };
  Pixels pixels[2];
  point_to(first, pixels[0]);
  for (std::int64_t t = 0; t < count; ++t) {
    const Pixels& of_tile = pixels[t % 2];
    Pixels& of_next = pixels[(t + 1) % 2];
    point_to(std::min(first + t + 1, tiles_ - 1), of_next);
    x_tile(of_tile.x, of_next.x, work.channels, work.x + t * panel, x_plane_, step_tiles * panel);
    dy_tile(of_tile.dy, of_next.dy, work.out_channels, work.dy + t * work.out_channels, dy_plane_, panel);
  }
}

/// Adds the products of `count` transformed tiles to the sums, or without `adds` stores them there.
void WeightGradWinograd::multiply(const Work& work, std::int64_t count, bool adds) const {
  constexpr std::int64_t width = panel_width<float>;
  PanelProduct<float> product;
  product.rows = work.out_channels;
  product.k = count;
  product.a_step = 1;
  product.a_inner_step = work.out_channels;
  product.y_step = work.channels;
  for (int p = 0; p < points; ++p) {
    product.a = work.dy + p * dy_plane_;
    for (std::int64_t column = 0; column < work.channels; column += width) {
      product.columns = std::min(width, work.channels - column);
      product.panels = work.x + p * x_plane_ + column * step_tiles;
      product.y = work.sums + p * sum_plane_ + column;
      product.residual = adds ? product.y : nullptr;
      multiply_panels(product);
    }
  }
}

template <class T, class Out>
void WeightGradWinograd::run_task(std::int64_t task, const T* dy, const T* x, float* memory, Out* out) const {
  const std::int64_t blocks = channel_blocks_ * out_blocks_;
  const std::int64_t slot = task / blocks;
  Work work{};
  work.channel = task % blocks % channel_blocks_ * channel_block_;
  work.channels = std::min(channel_block_, g_.channels - work.channel);
  work.out_channel = task % blocks / channel_blocks_ * out_block_;
  work.out_channels = std::min(out_block_, g_.out_channels - work.out_channel);
  work.x = memory;
  work.dy = work.x + points * x_plane_;
  work.sums = work.dy + points * dy_plane_;
  float* const outside = work.sums + points * sum_plane_;
  std::memset(outside, 0, zeros * sizeof(float));
  work.outside = outside;

  const std::int64_t begin = slot * slot_tiles_;
  const std::int64_t end = std::min(tiles_, begin + slot_tiles_);
  const std::int64_t steps = sdk::ceil_div(end - begin, step_tiles);  // of nearly equal numbers of tiles
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t first = begin + step * (end - begin) / steps, last = begin + (step + 1) * (end - begin) / steps;
    transform(work, dy, x, first, last - first);
    multiply(work, last - first, step != 0);
  }
  constexpr std::int64_t taps = kernel * kernel;
  Out* const dw = out + (slot * g_.out_channels + work.out_channel) * g_.channels * taps + work.channel * taps;
  for (std::int64_t o = 0; o < work.out_channels; ++o) {
    TENON_DISPATCH(weight_grad_of_sums<Out>)(work.sums + o * work.channels, sum_plane_, work.channels, dw + o * g_.channels * taps);
  }
}

template <class T>
void WeightGradWinograd::run(const sdk::Host& host, const T* dy, const T* x, char* memory, T* dw) const {
  auto* const parts = reinterpret_cast<float*>(memory);
  float* const works = parts + part_size();
  for_each_task(host, tasks(), [&](std::int64_t task, std::int64_t worker) {
    float* const work = works + worker * work_size();
    if (slots_ == 1) {
      run_task(task, dy, x, work, dw);
    } else {
      run_task(task, dy, x, work, parts);
    }
  });
  if (slots_ == 1) return;
  host.parallel_for(g_.weights(), 16 * 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slot = 1; slot < slots_; ++slot) {
      const float* const part = parts + slot * g_.weights();
      for (std::int64_t i = begin; i < end; ++i) parts[i] += part[i];
    }
    for (std::int64_t i = begin; i < end; ++i) dw[i] = rounded_to<T>(parts[i]);
  });
}

template void WeightGradWinograd::run(const sdk::Host&, const sdk::BFloat16*, const sdk::BFloat16*, char*, sdk::BFloat16*) const;
template void WeightGradWinograd::run(const sdk::Host&, const float*, const float*, char*, float*) const;

}  // namespace tenon::openblas
#endif
