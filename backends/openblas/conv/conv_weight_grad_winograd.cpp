// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_weight_grad_winograd.h"

#include "simd/foreach_target.h"

#include <cblas.h>

#include <algorithm>

#include <tenon/sdk/rounding.h>

#include "conv/winograd_transforms.h"
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
constexpr std::int64_t channel_step = 16;  // channels are a multiple of this: vectors of every instruction set are full
}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

using Channels = hn::CappedTag<float, channel_step>;
using Lanes = hn::Vec<Channels>;

template <int n>
HWY_INLINE void transform(const Lanes (&x)[n], Lanes (&y)[reach]) {
  if constexpr (n == reach) {
    winograd_input(Channels(), x, y);
  } else {
    winograd_output_grad(Channels(), x, y);
  }
}

/// Transforms both sides of a tile of n x n pixels, each a pointer to its channels. The 36 results are `plane` elements apart.
template <int n>
void transform_tile(const float* const* pixels, std::int64_t channels, float* out, std::int64_t plane) {
  const Channels d;
  for (std::int64_t c = 0; c < channels; c += lanes(d)) {
    Lanes half[reach][n];
    for (int j = 0; j < n; ++j) {
      Lanes column[n], y[reach];
      for (int i = 0; i < n; ++i) column[i] = hn::LoadU(d, pixels[i * n + j] + c);
      transform(column, y);
      for (int i = 0; i < reach; ++i) half[i][j] = y[i];
    }
    for (int i = 0; i < reach; ++i) {
      Lanes y[reach];
      transform(half[i], y);
      for (int j = 0; j < reach; ++j) hn::StoreU(y[j], d, out + (i * reach + j) * plane + c);
    }
  }
}

/// dw (channels, 3, 3) from 36 sums per channel, which are `plane` elements apart.
void weight_grad_of_sums(const float* sums, std::int64_t plane, std::int64_t channels, float* dw) {
  const Channels d;
  for (std::int64_t c = 0; c < channels; c += lanes(d)) {
    Lanes half[kernel][reach];
    for (int j = 0; j < reach; ++j) {
      Lanes column[reach], y[kernel];
      for (int i = 0; i < reach; ++i) column[i] = hn::LoadU(d, sums + (i * reach + j) * plane + c);
      winograd_weight_grad(d, column, y);
      for (int i = 0; i < kernel; ++i) half[i][j] = y[i];
    }
    HWY_ALIGN float taps[kernel * kernel * channel_step];
    for (int i = 0; i < kernel; ++i) {
      Lanes y[kernel];
      winograd_weight_grad(d, half[i], y);
      for (int j = 0; j < kernel; ++j) hn::Store(y[j], d, taps + (i * kernel + j) * lanes(d));
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

// A task's channels of x and of dy, and the tiles that it transforms at a time: the transformed tiles and their sums, 36 planes each, stay
// in an L2 of 2 MiB, and the products are long enough to run at full speed.
constexpr std::int64_t block_channels = 64;
constexpr std::int64_t step_tiles = 40;
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
  float *x, *dy;                           ///< transformed: 36 of (step_tiles, channels)
  float* sums;                             ///< 36 of (out_channels, channels)
  float* outside;
};

bool WeightGradWinograd::pays(const ConvGeometry& g) {
  if (g.kernel_height != kernel || g.kernel_width != kernel || g.groups != 1) return false;
  if (g.stride_height != 1 || g.stride_width != 1 || g.dilation_height != 1 || g.dilation_width != 1) return false;
  if (g.channels % channel_step != 0 || g.out_channels % channel_step != 0) return false;
  // Tiles across the border are multiplied in full, and the sums of few tiles are not worth their transform.
  const std::int64_t tiles = sdk::ceil_div(g.out_height, tile) * sdk::ceil_div(g.out_width, tile);
  return tiles * points * 2 <= g.out_pixels() * kernel * kernel && g.images * tiles >= 16;
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
  x_plane_ = step_tiles * channel_block_ + plane_gap;
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
void WeightGradWinograd::transform(const Work& work, const float* dy, const float* x, std::int64_t first, std::int64_t count) const {
  const auto x_tile = TENON_DISPATCH(transform_tile<reach>);
  const auto dy_tile = TENON_DISPATCH(transform_tile<tile>);
  const float* pixels[points];
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int64_t image = (first + t) / (tile_rows_ * tile_columns_);
    const std::int64_t row = (first + t) / tile_columns_ % tile_rows_ * tile;
    const std::int64_t column = (first + t) % tile_columns_ * tile;
    const auto point_to = [&](const float* data, std::int64_t height, std::int64_t width, std::int64_t channels, std::int64_t top,
                              std::int64_t left, int side) {
      for (int i = 0; i < side; ++i) {
        const bool inside = top + i >= 0 && top + i < height;
        const float* const line = data + ((image * height + top + i) * width + left) * channels;
        for (int j = 0; j < side; ++j) {
          pixels[i * side + j] = inside && left + j >= 0 && left + j < width ? line + j * channels : work.outside;
        }
      }
    };
    point_to(x + work.channel, g_.height, g_.width, g_.channels, row - g_.pad_top, column - g_.pad_left, reach);
    x_tile(pixels, work.channels, work.x + t * work.channels, x_plane_);
    point_to(dy + work.out_channel, g_.out_height, g_.out_width, g_.out_channels, row, column, tile);
    dy_tile(pixels, work.out_channels, work.dy + t * work.out_channels, dy_plane_);
  }
}

void WeightGradWinograd::run_task(std::int64_t task, const float* dy, const float* x, float* memory, float* parts) const {
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
  work.outside = work.sums + points * sum_plane_;
  std::fill_n(work.outside, zeros, 0.0F);

  const int channels = static_cast<int>(work.channels);
  const int out_channels = static_cast<int>(work.out_channels);
  const std::int64_t begin = slot * slot_tiles_;
  const std::int64_t end = std::min(tiles_, begin + slot_tiles_);
  for (std::int64_t first = begin; first < end; first += step_tiles) {
    const std::int64_t n = std::min(step_tiles, end - first);
    transform(work, dy, x, first, n);
    for (int p = 0; p < points; ++p) {
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out_channels, channels, static_cast<int>(n), 1.0F, work.dy + p * dy_plane_,
                  out_channels, work.x + p * x_plane_, channels, first == begin ? 0.0F : 1.0F, work.sums + p * sum_plane_, channels);
    }
  }
  constexpr std::int64_t taps = kernel * kernel;
  float* const dw = parts + (slot * g_.out_channels + work.out_channel) * g_.channels * taps + work.channel * taps;
  for (std::int64_t o = 0; o < work.out_channels; ++o) {
    TENON_DISPATCH(weight_grad_of_sums)(work.sums + o * work.channels, sum_plane_, work.channels, dw + o * g_.channels * taps);
  }
}

void WeightGradWinograd::run(const sdk::Host& host, const float* dy, const float* x, char* memory, float* dw) const {
  auto* const parts = reinterpret_cast<float*>(memory);
  float* const works = parts + part_size();
  for_each_task(host, tasks(), [&](std::int64_t task, std::int64_t worker) {
    run_task(task, dy, x, works + worker * work_size(), slots_ == 1 ? dw : parts);
  });
  if (slots_ == 1) return;
  host.parallel_for(g_.weights(), 16 * 1024, [&](std::int64_t begin, std::int64_t end) {
    std::copy(parts + begin, parts + end, dw + begin);
    for (std::int64_t slot = 1; slot < slots_; ++slot) {
      const float* const part = parts + slot * g_.weights();
      for (std::int64_t i = begin; i < end; ++i) dw[i] += part[i];
    }
  });
}

}  // namespace tenon::openblas
#endif
