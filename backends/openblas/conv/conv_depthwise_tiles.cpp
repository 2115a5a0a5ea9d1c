// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_depthwise_tiles.h"

#include "simd/foreach_target.h"
#include "workers.h"

#include <hwy/cache_control.h>
#include <algorithm>

#include "conv/depthwise_vectors.h"
#include "gemm/product_types.h"
#include "simd/unroll.h"

#ifndef TENON_OPENBLAS_DEPTHWISE_BAND
#define TENON_OPENBLAS_DEPTHWISE_BAND
namespace tenon::openblas {
namespace {

/// Rows [first_row, end_row) and channels [first_channel, end_channel) of the results of one image.
template <class T>
struct DepthwiseBand {
  const ConvGeometry* g = nullptr;
  const T* x = nullptr;
  const T* w = nullptr;
  const T* bias = nullptr;
  const T* residual = nullptr;
  sdk::Activation activation = {};
  T* y = nullptr;
  std::int64_t first_row = 0, end_row = 0;
  std::int64_t first_channel = 0, end_channel = 0;
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// Bytes of x that stay in L1.
constexpr std::int64_t near_bytes = 24 * 1024;
// The smallest number of vectors of channels that are read one after another: the processor fetches what follows ahead.
constexpr std::int64_t min_block_vectors = 4;

/// Where the results of a tile read x, for all channels.
struct TilePlace {
  std::int64_t step, line;            ///< between pixels and lines of x, elements
  std::int64_t w_line;                ///< between lines of taps
  std::int64_t taps;                  ///< lines of taps within x
  std::int64_t first_read, end_read;  ///< columns within x, from the tile's first one on
  bool inside;                        ///< all are
};

/// Loads into a register: the compiler would otherwise load a pixel again for each result that it contributes to.
template <class T, bool part>
HWY_INLINE hn::Vec<Wide<Computed<T>>> load_once(const Channels<T, part>& access, const T* p) {
  auto v = access.load(p);
#if HWY_TARGET == HWY_AVX3
  asm("" : "+v"(v.raw));
#endif
  return v;
}

/// Computes `pixels` neighbouring results for one vector of channels. Each loaded pixel of x is used for all results that it contributes
/// to.
template <int kernel, int stride, int pixels, bool part, class T>
HWY_INLINE void tile(const TilePlace& place, const SumActivation<Computed<T>>& activation, const Channels<T, part>& access, const T* x,
                     const T* w, const T* bias, const T* residual, T* y) {
  using C = Computed<T>;
  const Wide<C> d;
  constexpr int reads = (pixels - 1) * stride + kernel;
  hn::Vec<Wide<C>> sum[pixels];
  TENON_UNROLL
  for (int p = 0; p < pixels; ++p) sum[p] = hn::Zero(d);
  for (std::int64_t a = 0; a < place.taps; ++a, x += place.line, w += place.w_line) {
    hn::Vec<Wide<C>> weight[kernel];
    TENON_UNROLL
    for (int t = 0; t < kernel; ++t) weight[t] = access.load(w + t * place.step);
    const T* from = x;
    TENON_UNROLL
    for (int i = 0; i < reads; ++i, from += place.step) {
      // Only the outer reads of a tile may lie in the padding, which is narrower than the kernel.
      const bool outer = i < kernel - 1 || i > reads - kernel;
      if (outer && !place.inside && (i < place.first_read || i >= place.end_read)) continue;
      const auto v = load_once(access, from);
      TENON_UNROLL
      for (int t = 0; t < kernel; ++t) {
        const int p = (i - t) / stride;
        if (i < t || (i - t) % stride != 0 || p >= pixels) continue;
        sum[p] = hn::MulAdd(v, weight[t], sum[p]);
      }
    }
  }
  if (bias != nullptr) {
    const auto addend = access.load(bias);
    TENON_UNROLL
    for (int p = 0; p < pixels; ++p) sum[p] = hn::Add(sum[p], addend);
  }
  if (residual != nullptr) {
    TENON_UNROLL
    for (int p = 0; p < pixels; ++p) sum[p] = hn::Add(sum[p], access.load(residual + p * place.step));
  }
  activation(sum);
  TENON_UNROLL
  for (int p = 0; p < pixels; ++p, y += place.step) access.store(sum[p], y);
}

/// The tiles of `pixels` results of a row, from `column` on; returns the column after them.
template <int kernel, int stride, int pixels, class T>
HWY_NOINLINE std::int64_t tiles_of(const DepthwiseBand<T>& band, const SumActivation<Computed<T>>& activation, std::int64_t row,
                                   std::int64_t column) {
  constexpr int reads = (pixels - 1) * stride + kernel;
  const ConvGeometry g = *band.g;
  const std::int64_t width = lanes(Wide<Computed<T>>());
  const std::int64_t top = row * stride - g.pad_top;
  const std::int64_t first_tap = std::max<std::int64_t>(0, -top), end_tap = std::min<std::int64_t>(kernel, g.height - top);
  TilePlace place;
  place.step = g.channels;
  place.line = g.width * g.channels;
  place.w_line = kernel * g.channels;
  place.taps = end_tap - first_tap;
  for (; column + pixels <= g.out_width; column += pixels) {
    const std::int64_t left = column * stride - g.pad_left;
    place.first_read = -left;
    place.end_read = g.width - left;
    place.inside = place.first_read <= 0 && place.end_read >= reads;
    const T* const x = band.x + (top + first_tap) * place.line + left * place.step;
    const T* const w = band.w + first_tap * place.w_line;
    const std::int64_t at = (row * g.out_width + column) * place.step;
    T* const y = band.y + at;
    const T* const residual = band.residual == nullptr ? nullptr : band.residual + at;
    const auto offset = [](const T* p, std::int64_t elements) { return p == nullptr ? nullptr : p + elements; };
    std::int64_t c = band.first_channel;
    for (; c + width <= band.end_channel; c += width) {
      tile<kernel, stride, pixels, false>(place, activation, Channels<T, false>{}, x + c, w + c, offset(band.bias, c), offset(residual, c),
                                          y + c);
    }
    if (c == band.end_channel) continue;
    const Channels<T, true> access{band.end_channel - c};
    TilePlace one = place;
    for (int p = 0; p < pixels; ++p) {
      const std::int64_t j = p * place.step + c;
      one.first_read = place.first_read - p * stride;
      one.end_read = place.end_read - p * stride;
      one.inside = one.first_read <= 0 && one.end_read >= kernel;
      tile<kernel, stride, 1, true>(one, activation, access, x + p * stride * place.step + c, w + c, offset(band.bias, c),
                                    offset(residual, j), y + j);
    }
  }
  return column;
}

template <int kernel, int stride, class T>
void rows_of(const DepthwiseBand<T>& band) {
  using C = Computed<T>;
  const SumActivation<C> activation(band.activation);
  // Channels whose lines of x stay in L1 for the next rows; all of them if these would be too few in a row.
  const std::int64_t width = lanes(Wide<C>());
  const std::int64_t vectors = near_bytes / (kernel * band.g->width * width * static_cast<std::int64_t>(sizeof(T)));
  const std::int64_t block = vectors < min_block_vectors ? band.end_channel - band.first_channel : vectors * width;
  DepthwiseBand<T> part = band;
  for (; part.first_channel < band.end_channel; part.first_channel += block) {
    part.end_channel = std::min(band.end_channel, part.first_channel + block);
    for (std::int64_t row = band.first_row; row < band.end_row; ++row) {
      std::int64_t column = 0;
#if HWY_TARGET == HWY_AVX3
      if constexpr (stride == 1) column = tiles_of<kernel, stride, 14>(part, activation, row, column);
#endif
      column = tiles_of<kernel, stride, 7>(part, activation, row, column);
      column = tiles_of<kernel, stride, 4>(part, activation, row, column);
      tiles_of<kernel, stride, 1>(part, activation, row, column);
    }
  }
}

template <class T>
void run_band(const DepthwiseBand<T>& band) {
  const bool small = band.g->kernel_width == 3, dense = band.g->stride_width == 1;
  if (small) return dense ? rows_of<3, 1>(band) : rows_of<3, 2>(band);
  return dense ? rows_of<5, 1>(band) : rows_of<5, 2>(band);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Multiply-adds that are divided among threads: about 2 us.
constexpr std::int64_t divided_work = 64 * 1024;
// Channels of a task of images with few rows: a multiple of the vectors of all instruction sets, and runs of several cache lines.
constexpr std::int64_t few_rows_channels = 64;
// Rows of a task of images with many: below, too many of the rows of x would be read by two tasks.
constexpr std::int64_t min_rows = 7;

}  // namespace

bool depthwise_tiles_fit(const ConvGeometry& g) {
  const auto fits = [](std::int64_t kernel, std::int64_t stride, std::int64_t dilation, std::int64_t size, std::int64_t results,
                       std::int64_t pad) {
    const std::int64_t pad_end = (results - 1) * stride - pad + kernel - size;
    return dilation == 1 && pad >= 0 && pad < kernel && pad_end < kernel;
  };
  return g.kernel_height == g.kernel_width && (g.kernel_width == 3 || g.kernel_width == 5) && g.stride_height == g.stride_width &&
         (g.stride_width == 1 || g.stride_width == 2) &&
         fits(g.kernel_height, g.stride_height, g.dilation_height, g.height, g.out_height, g.pad_top) &&
         fits(g.kernel_width, g.stride_width, g.dilation_width, g.width, g.out_width, g.pad_left);
}

template <class T>
void depthwise_tiles(const ConvGeometry& g, const sdk::Call& call, const T* x, const T* w, const T* bias, T* y) {
  const std::int64_t work = g.out_pixels() * g.taps();
  // Threads take bands of rows, which they have often written themselves in the layer before. If there are few, they take channels.
  const std::int64_t workers = worker_count(call.host, g.out_height);
  const bool by_rows = g.height >= 3 * workers;
  const std::int64_t bands = by_rows ? workers * std::max<std::int64_t>(1, g.out_height / (2 * min_rows * workers)) : 1;
  const std::int64_t channels = by_rows ? g.channels : std::min(few_rows_channels, g.channels);
  const std::int64_t blocks = sdk::ceil_div(g.channels, channels);
  const T* const residual = call.epilogue.residual == nullptr ? nullptr : call.epilogue.residual->as<const T>();
  const auto run = [&](std::int64_t task, std::int64_t) {
    const std::int64_t block = task % blocks, band = task / blocks % bands, image = task / blocks / bands;
    DepthwiseBand<T> part;
    part.g = &g;
    part.x = x + image * g.pixels() * g.channels;
    part.w = w;
    part.bias = bias;
    part.residual = residual == nullptr ? nullptr : residual + image * g.out_pixels() * g.channels;
    part.activation = call.epilogue.activation;
    part.y = y + image * g.out_pixels() * g.channels;
    part.first_row = band * g.out_height / bands;
    part.end_row = (band + 1) * g.out_height / bands;
    part.first_channel = block * channels;
    part.end_channel = std::min(g.channels, part.first_channel + channels);
    TENON_DISPATCH(run_band<T>)(part);
  };
  const std::int64_t tasks = g.images * bands * blocks;
  if (g.images * work * g.channels < divided_work) {
    for (std::int64_t task = 0; task < tasks; ++task) run(task, 0);
  } else {
    for_each_task(call.host, tasks, run);
  }
}

template void depthwise_tiles(const ConvGeometry&, const sdk::Call&, const sdk::BFloat16*, const sdk::BFloat16*, const sdk::BFloat16*,
                              sdk::BFloat16*);
template void depthwise_tiles(const ConvGeometry&, const sdk::Call&, const float*, const float*, const float*, float*);
template void depthwise_tiles(const ConvGeometry&, const sdk::Call&, const double*, const double*, const double*, double*);

}  // namespace tenon::openblas
#endif
