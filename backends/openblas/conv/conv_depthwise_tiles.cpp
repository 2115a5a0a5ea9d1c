// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_depthwise_tiles.h"

#include "simd/foreach_target.h"
#include "workers.h"

#include <hwy/cache_control.h>
#include <algorithm>
#include <limits>

#include "gemm/product_types.h"
#include "simd/activations.h"
#include "simd/bf16.h"

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

#if HWY_COMPILER_CLANG
#define TENON_UNROLL_TAPS _Pragma("clang loop unroll(full)")
#else
#define TENON_UNROLL_TAPS _Pragma("GCC unroll 64")
#endif

/// Access to one vector of channels, or to its first n lanes.
template <class T, bool part>
struct Channels {
  using D = Wide<Computed<T>>;
  std::int64_t n = 0;
  HWY_INLINE hn::Vec<D> load(const T* p) const {
    if constexpr (part) return load_stored_first(D(), p, n);
    return load_stored(D(), p);
  }
  HWY_INLINE void store(hn::Vec<D> v, T* p) const {
    if constexpr (part) {
      store_rounded_first(v, D(), p, n);
    } else {
      store_rounded(v, D(), p);
    }
  }
};

/// The activations that are not a comparison: n elements, whole vectors.
template <class C>
HWY_NOINLINE void activate_all(const sdk::Activation& activation, C* sums, std::int64_t n) {
  with_activation<C>(activation, [&](const auto& activate) { map(activate, sums, sums, n); });
}

/// What the tiles of a band have in common, for one vector of channels.
template <class T>
struct TileInputs {
  const DepthwiseBand<T>* band;
  std::int64_t channel;
  std::int64_t lanes_left;  ///< channels from `channel` on
  bool compares;            ///< the activation is `bounds`, or none
  Clip<Computed<T>> bounds;
};

/// Computes `pixels` neighbouring results from (row, column) on, for one vector of channels. Each loaded pixel of x is used for all results
/// in registers that it contributes to.
template <int kernel, int stride, int pixels, bool part, class T>
HWY_INLINE void tile(const TileInputs<T>& in, std::int64_t row, std::int64_t column) {
  using C = Computed<T>;
  const Wide<C> d;
  constexpr int reads = (pixels - 1) * stride + kernel;
  const DepthwiseBand<T>& band = *in.band;
  const ConvGeometry& g = *band.g;
  const Channels<T, part> access{in.lanes_left};
  const std::int64_t step = g.channels, line = g.width * g.channels;
  const std::int64_t top = row * stride - g.pad_top, left = column * stride - g.pad_left;
  const std::int64_t first_tap = std::max<std::int64_t>(0, -top), end_tap = std::min<std::int64_t>(kernel, g.height - top);
  const std::int64_t first_read = -left, end_read = g.width - left;
  const bool inside = first_read <= 0 && end_read >= reads;
  const T* x = band.x + (top + first_tap) * line + left * step + in.channel;
  const T* w = band.w + first_tap * kernel * step + in.channel;
  hn::Vec<Wide<C>> sum[pixels];
  TENON_UNROLL_TAPS
  for (int p = 0; p < pixels; ++p) sum[p] = hn::Zero(d);
  for (std::int64_t a = first_tap; a < end_tap; ++a, x += line, w += kernel * step) {
    hn::Vec<Wide<C>> weight[kernel];
    TENON_UNROLL_TAPS
    for (int t = 0; t < kernel; ++t) weight[t] = access.load(w + t * step);
    TENON_UNROLL_TAPS
    for (int i = 0; i < reads; ++i) {
      // Only the outer reads of a tile may lie in the padding, which is narrower than the kernel.
      const bool outer = i < kernel - 1 || i > reads - kernel;
      if (outer && !inside && (i < first_read || i >= end_read)) continue;
      const auto v = access.load(x + i * step);
      TENON_UNROLL_TAPS
      for (int t = 0; t < kernel; ++t) {
        const int p = (i - t) / stride;
        if (i < t || (i - t) % stride != 0 || p >= pixels) continue;
        sum[p] = hn::MulAdd(v, weight[t], sum[p]);
      }
    }
  }
  const std::int64_t at = (row * g.out_width + column) * step + in.channel;
  if (band.bias != nullptr) {
    const auto bias = access.load(band.bias + in.channel);
    TENON_UNROLL_TAPS
    for (int p = 0; p < pixels; ++p) sum[p] = hn::Add(sum[p], bias);
  }
  if (band.residual != nullptr) {
    TENON_UNROLL_TAPS
    for (int p = 0; p < pixels; ++p) sum[p] = hn::Add(sum[p], access.load(band.residual + at + p * step));
  }
  if (in.compares) {
    TENON_UNROLL_TAPS
    for (int p = 0; p < pixels; ++p) access.store(in.bounds(d, sum[p]), band.y + at + p * step);
    return;
  }
  HWY_ALIGN C sums[pixels * HWY_MAX_BYTES / sizeof(C)];
  TENON_UNROLL_TAPS
  for (int p = 0; p < pixels; ++p) hn::Store(sum[p], d, sums + p * lanes(d));
  activate_all(band.activation, sums, pixels * lanes(d));
  TENON_UNROLL_TAPS
  for (int p = 0; p < pixels; ++p) access.store(hn::Load(d, sums + p * lanes(d)), band.y + at + p * step);
}

/// The tiles of `pixels` results of a row, from `column` on.
template <int kernel, int stride, int pixels, class T>
HWY_NOINLINE std::int64_t tiles_of(TileInputs<T>& in, std::int64_t row, std::int64_t column) {
  const std::int64_t width = lanes(Wide<Computed<T>>());
  for (; column + pixels <= in.band->g->out_width; column += pixels) {
    for (in.channel = in.band->first_channel; in.channel < in.band->end_channel; in.channel += width) {
      in.lanes_left = in.band->end_channel - in.channel;
      if (in.lanes_left >= width) {
        tile<kernel, stride, pixels, false>(in, row, column);
      } else if constexpr (pixels > 4) {
        for (int p = 0; p < pixels; ++p) tile<kernel, stride, 1, true>(in, row, column + p);
      } else {
        tile<kernel, stride, pixels, true>(in, row, column);
      }
    }
  }
  return column;
}

template <int kernel, int stride, class T>
void rows_of(const DepthwiseBand<T>& band) {
  using C = Computed<T>;
  TileInputs<T> in{&band, 0, 0, false, {-std::numeric_limits<C>::infinity(), std::numeric_limits<C>::infinity()}};
  in.compares = band.activation == sdk::Activation::none || band.activation == sdk::Activation::relu ||
                (band.activation == sdk::Activation::clip && sizeof(C) == sizeof(float));
  if (band.activation == sdk::Activation::relu) in.bounds.low = 0;
  if (band.activation == sdk::Activation::clip) in.bounds = {C(band.activation.low), C(band.activation.high)};
  for (std::int64_t row = band.first_row; row < band.end_row; ++row) {
    std::int64_t column = 0;
#if HWY_TARGET == HWY_AVX3
    if constexpr (stride == 1) column = tiles_of<kernel, stride, 14>(in, row, column);
#endif
    column = tiles_of<kernel, stride, 7>(in, row, column);
    column = tiles_of<kernel, stride, 4>(in, row, column);
    tiles_of<kernel, stride, 1>(in, row, column);
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
