#include "conv_weight_grad_winograd.h"

#include "instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "conv_weight_grad_winograd.cpp"
#include <hwy/foreach_target.h>

#include <cblas.h>

#include <algorithm>

#include "simd.h"
#include "workers.h"

#ifndef TENON_OPENBLAS_WEIGHT_GRAD_TILES
#define TENON_OPENBLAS_WEIGHT_GRAD_TILES
namespace tenon::openblas {
namespace {
constexpr int tile = 4;                // pixels of dy along a side
constexpr int reach = 6;               // pixels of x that they see
constexpr int points = reach * reach;  // elements of a transformed tile
constexpr int kernel = 3;
constexpr std::int64_t channel_step = 16;  // channels come in such numbers: registers of every instruction set are filled
}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

using Channels = hn::CappedTag<float, channel_step>;
using Lanes = hn::Vec<Channels>;

/// y = B' x
HWY_INLINE void transform_x(const Lanes (&x)[reach], Lanes (&y)[reach]) {
  const Channels d;
  const Lanes two = hn::Set(d, 2.0F), four = hn::Set(d, 4.0F), five = hn::Set(d, 5.0F);
  const Lanes a = hn::NegMulAdd(four, x[2], x[4]);
  const Lanes b = hn::NegMulAdd(four, x[1], x[3]);
  const Lanes c = hn::Sub(x[4], x[2]);
  const Lanes e = hn::Mul(two, hn::Sub(x[3], x[1]));
  y[0] = hn::MulAdd(four, x[0], hn::NegMulAdd(five, x[2], x[4]));
  y[1] = hn::Add(a, b);
  y[2] = hn::Sub(a, b);
  y[3] = hn::Add(c, e);
  y[4] = hn::Sub(c, e);
  y[5] = hn::MulAdd(four, x[1], hn::NegMulAdd(five, x[3], x[5]));
}

/// y = A x
HWY_INLINE void transform_dy(const Lanes (&x)[tile], Lanes (&y)[reach]) {
  const Channels d;
  const Lanes four = hn::Set(d, 4.0F);
  const Lanes even = hn::Add(x[0], x[2]), odd = hn::Add(x[1], x[3]);
  const Lanes far_even = hn::MulAdd(four, x[2], x[0]), far_odd = hn::MulAdd(four, x[3], x[1]);
  y[0] = x[0];
  y[1] = hn::Add(even, odd);
  y[2] = hn::Sub(even, odd);
  y[3] = hn::MulAdd(hn::Set(d, 2.0F), far_odd, far_even);
  y[4] = hn::NegMulAdd(hn::Set(d, 2.0F), far_odd, far_even);
  y[5] = x[3];
}

/// y = G' x
HWY_INLINE void transform_sums(const Lanes (&x)[reach], Lanes (&y)[kernel]) {
  const Channels d;
  const Lanes sixth = hn::Set(d, 1.0F / 6.0F);
  const Lanes near = hn::Mul(sixth, hn::Add(x[1], x[2]));
  const Lanes far = hn::Mul(sixth, hn::Add(x[3], x[4]));
  y[0] = hn::MulAdd(hn::Set(d, 0.25F), hn::Add(x[0], far), hn::Neg(near));
  y[1] = hn::Mul(sixth, hn::MulAdd(hn::Set(d, 0.5F), hn::Sub(x[3], x[4]), hn::Sub(x[2], x[1])));
  y[2] = hn::Add(hn::Sub(far, near), x[5]);
}

template <int n>
HWY_INLINE void transform(const Lanes (&x)[n], Lanes (&y)[reach]) {
  if constexpr (n == reach) {
    transform_x(x, y);
  } else {
    transform_dy(x, y);
  }
}

/// Both sides of a tile of n x n pixels, each a pointer to its channels. The 36 results lie `plane` elements apart.
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

}  // namespace

void winograd_x_tile(const float* const* pixels, std::int64_t channels, float* out, std::int64_t plane) {
  transform_tile<reach>(pixels, channels, out, plane);
}

void winograd_dy_tile(const float* const* pixels, std::int64_t channels, float* out, std::int64_t plane) {
  transform_tile<tile>(pixels, channels, out, plane);
}

/// dw (channels, 3, 3) from 36 sums per channel, which lie `plane` elements apart.
void winograd_weights(const float* sums, std::int64_t plane, std::int64_t channels, float* dw) {
  const Channels d;
  for (std::int64_t c = 0; c < channels; c += lanes(d)) {
    Lanes half[kernel][reach];
    for (int j = 0; j < reach; ++j) {
      Lanes column[reach], y[kernel];
      for (int i = 0; i < reach; ++i) column[i] = hn::LoadU(d, sums + (i * reach + j) * plane + c);
      transform_sums(column, y);
      for (int i = 0; i < kernel; ++i) half[i][j] = y[i];
    }
    HWY_ALIGN float taps[kernel * kernel * channel_step];
    for (int i = 0; i < kernel; ++i) {
      Lanes y[kernel];
      transform_sums(half[i], y);
      for (int j = 0; j < kernel; ++j) hn::Store(y[j], d, taps + (i * kernel + j) * lanes(d));
    }
    for (std::int64_t k = 0; k < lanes(d); ++k) {
      for (int t = 0; t < kernel * kernel; ++t) dw[(c + k) * kernel * kernel + t] = taps[t * lanes(d) + k];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements of the transformed tiles of a block. Long sums keep the products fast: each reads and writes all its sums once.
constexpr std::int64_t block_elements = 4 << 20;
constexpr std::int64_t smallest_block = 128;
constexpr std::int64_t tile_grain = 8;  // tiles per task
// Planes begin in different sets of the first cache, whatever their size.
constexpr std::int64_t plane_gap = 16;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

struct WeightGradWinograd::Memory {
  float *x, *dy, *sums;
  float* zeros;  ///< channels of a pixel outside of an image
};

bool WeightGradWinograd::pays(const ConvGeometry& g) {
  if (g.kernel_height != kernel || g.kernel_width != kernel || g.groups != 1) return false;
  if (g.stride_height != 1 || g.stride_width != 1 || g.dilation_height != 1 || g.dilation_width != 1) return false;
  if (g.channels % channel_step != 0 || g.out_channels % channel_step != 0 || g.channels < 32 || g.out_channels < 32) return false;
  // Tiles that reach over the border are multiplied in full. The transforms cost about as much again as the products of few channels.
  const std::int64_t tiles = ceil_div(g.out_height, tile) * ceil_div(g.out_width, tile);
  return tiles * points * 2 <= g.out_pixels() * kernel * kernel && g.images * tiles >= 64;
}

WeightGradWinograd::WeightGradWinograd(const ConvGeometry& g)
    : g_(g),
      tile_rows_(ceil_div(g.out_height, tile)),
      tile_columns_(ceil_div(g.out_width, tile)),
      tiles_(g.images * tile_rows_ * tile_columns_),
      sum_plane_(g.channels * g.out_channels + plane_gap) {
  const std::int64_t largest = std::max(block_elements / (points * (g.channels + g.out_channels)), smallest_block);
  block_ = ceil_div(tiles_, ceil_div(tiles_, largest));
  x_plane_ = block_ * g.channels + plane_gap;
  dy_plane_ = block_ * g.out_channels + plane_gap;
}

WeightGradWinograd::Memory WeightGradWinograd::parts(char* memory) const {
  Memory parts{};
  parts.x = reinterpret_cast<float*>(memory);
  parts.dy = parts.x + points * x_plane_;
  parts.sums = parts.dy + points * dy_plane_;
  parts.zeros = parts.sums + points * sum_plane_;
  return parts;
}

std::size_t WeightGradWinograd::scratch() const {
  return scratch_bytes(points * (x_plane_ + dy_plane_ + sum_plane_) + std::max(g_.channels, g_.out_channels), sizeof(float));
}

/// Tiles [begin, end) of the block that starts with tile `first`.
void WeightGradWinograd::transform(const Memory& memory, const float* dy, const float* x, std::int64_t first, std::int64_t begin,
                                   std::int64_t end) const {
  const auto x_tile = TENON_BEST(winograd_x_tile);
  const auto dy_tile = TENON_BEST(winograd_dy_tile);
  const float* pixels[points];
  for (std::int64_t t = begin; t < end; ++t) {
    const std::int64_t image = (first + t) / (tile_rows_ * tile_columns_);
    const std::int64_t row = (first + t) / tile_columns_ % tile_rows_ * tile;
    const std::int64_t column = (first + t) % tile_columns_ * tile;
    const auto point_to = [&](const float* data, std::int64_t height, std::int64_t width, std::int64_t channels, std::int64_t top,
                              std::int64_t left, int side) {
      for (int i = 0; i < side; ++i) {
        const bool inside = top + i >= 0 && top + i < height;
        const float* const line = data + ((image * height + top + i) * width + left) * channels;
        for (int j = 0; j < side; ++j) {
          pixels[i * side + j] = inside && left + j >= 0 && left + j < width ? line + j * channels : memory.zeros;
        }
      }
    };
    point_to(x, g_.height, g_.width, g_.channels, row - g_.pad_top, column - g_.pad_left, reach);
    x_tile(pixels, g_.channels, memory.x + t * g_.channels, x_plane_);
    point_to(dy, g_.out_height, g_.out_width, g_.out_channels, row, column, tile);
    dy_tile(pixels, g_.out_channels, memory.dy + t * g_.out_channels, dy_plane_);
  }
}

void WeightGradWinograd::run(const sdk::Host& host, const float* dy, const float* x, char* memory, float* dw) const {
  const Memory m = parts(memory);
  const std::int64_t channels = g_.channels;
  const std::int64_t out_channels = g_.out_channels;
  std::fill_n(m.zeros, std::max(channels, out_channels), 0.0F);
  const std::int64_t row_blocks = out_channels >= 256 ? 2 : 1;  // more products than 36 for many threads
  const std::int64_t row_block = ceil_div(out_channels, row_blocks);
  for (std::int64_t first = 0; first < tiles_; first += block_) {
    const std::int64_t n = std::min(block_, tiles_ - first);
    for_each_task(host, ceil_div(n, tile_grain), [&](std::int64_t task, std::int64_t) {
      transform(m, dy, x, first, task * tile_grain, std::min(n, (task + 1) * tile_grain));
    });
    for_each_task(host, points * row_blocks, [&](std::int64_t task, std::int64_t) {
      const std::int64_t point = task / row_blocks;
      const std::int64_t row = task % row_blocks * row_block;
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, static_cast<int>(std::min(row_block, out_channels - row)),
                  static_cast<int>(channels), static_cast<int>(n), 1.0F, m.dy + point * dy_plane_ + row, static_cast<int>(out_channels),
                  m.x + point * x_plane_, static_cast<int>(channels), first == 0 ? 0.0F : 1.0F,
                  m.sums + point * sum_plane_ + row * channels, static_cast<int>(channels));
    });
  }
  host.parallel_for(out_channels, std::max<std::int64_t>(1, 2048 / channels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      TENON_BEST(winograd_weights)(m.sums + o * channels, sum_plane_, channels, dw + o * channels * kernel * kernel);
    }
  });
}

}  // namespace tenon::openblas
#endif
