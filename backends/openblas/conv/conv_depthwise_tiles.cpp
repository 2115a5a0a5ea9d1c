// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_depthwise_tiles.h"

#include "simd/foreach_target.h"
#include "workers.h"

#include <hwy/cache_control.h>
#include <algorithm>
#include <type_traits>

#include "conv/depthwise_vectors.h"
#include "gemm/product_types.h"
#include "simd/unroll.h"

#ifndef TENON_OPENBLAS_DEPTHWISE_BAND
#define TENON_OPENBLAS_DEPTHWISE_BAND
namespace tenon::openblas {
namespace {

/// What becomes of the partial sums of one image.
struct MeansOfImage {
  const double* sums = nullptr;
  std::int64_t step = 0, segments = 0;
  std::int64_t channels = 0, pixels = 0;
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
  std::int64_t wrap, ring;            ///< after this many lines of taps x is `ring` elements back; -1: never
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

/// Adds vectors of results, as they are stored, to the sums of their channels: in f64, as ReduceMean does.
template <class T, int pixels>
HWY_INLINE void add_results(const hn::Vec<Wide<Computed<T>>> (&results)[pixels], double* sums) {
  const Wide<double> d;
  if constexpr (std::is_same_v<T, double>) {
    auto total = hn::LoadU(d, sums);
    TENON_UNROLL
    for (int p = 0; p < pixels; ++p) total = hn::Add(total, results[p]);
    hn::StoreU(total, d, sums);
  } else {
    const Wide<float> single;
    const hn::Rebind<float, Wide<double>> narrow;
    HWY_ALIGN float stored[pixels * HWY_MAX_BYTES / sizeof(float)];
    TENON_UNROLL
    for (int p = 0; p < pixels; ++p) {
      auto v = results[p];
      if constexpr (std::is_same_v<T, sdk::BFloat16>) v = from_bf16(to_bf16(v));
      hn::Store(v, single, stored + p * lanes(single));
    }
    for (std::int64_t c = 0; c < lanes(single); c += lanes(d)) {
      auto total = hn::LoadU(d, sums + c);
      TENON_UNROLL
      for (int p = 0; p < pixels; ++p) total = hn::Add(total, hn::PromoteTo(d, hn::LoadU(narrow, stored + p * lanes(single) + c)));
      hn::StoreU(total, d, sums + c);
    }
  }
}

/// Computes `pixels` neighbouring results for one vector of channels. Each loaded pixel of x is used for all results that it contributes
/// to.
template <int kernel, int stride, int pixels, bool part, class T>
HWY_INLINE void tile(const TilePlace& place, const SumActivation<Computed<T>>& activation, const Channels<T, part>& access, const T* x,
                     const T* w, const T* bias, const T* residual, T* y, double* sums) {
  using C = Computed<T>;
  const Wide<C> d;
  constexpr int reads = (pixels - 1) * stride + kernel;
  hn::Vec<Wide<C>> sum[pixels];
  TENON_UNROLL
  for (int p = 0; p < pixels; ++p) sum[p] = hn::Zero(d);
  for (std::int64_t a = 0; a < place.taps; ++a, x += place.line, w += place.w_line) {
    if (a == place.wrap) x -= place.ring;
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
  if (sums != nullptr) add_results<T>(sum, sums);
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
  const std::int64_t first_line = band.ring_lines == 0 ? top + first_tap : (top + first_tap) % band.ring_lines;
  place.ring = band.ring_lines * place.line;
  place.wrap = band.ring_lines == 0 ? -1 : band.ring_lines - first_line;
  for (; column + pixels <= g.out_width; column += pixels) {
    const std::int64_t left = column * stride - g.pad_left;
    place.first_read = -left;
    place.end_read = g.width - left;
    place.inside = place.first_read <= 0 && place.end_read >= reads;
    const T* const x = band.x + first_line * place.line + left * place.step;
    const T* const w = band.w + first_tap * place.w_line;
    const std::int64_t at = ((row - band.y_row) * g.out_width + column) * place.step;
    T* const y = band.y + at;
    const T* const residual = band.residual == nullptr ? nullptr : band.residual + at;
    double* const sums = band.sums == nullptr ? nullptr : band.sums + row / band.segment_rows * band.sums_step;
    const auto offset = [](auto* p, std::int64_t elements) { return p == nullptr ? nullptr : p + elements; };
    std::int64_t c = band.first_channel;
    for (; c + width <= band.end_channel; c += width) {
      tile<kernel, stride, pixels, false>(place, activation, Channels<T, false>{}, x + c, w + c, offset(band.bias, c), offset(residual, c),
                                          y + c, offset(sums, c));
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
                                    offset(residual, j), y + j, offset(sums, c));
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
      if (band.sums != nullptr && row % band.segment_rows == 0) {
        double* const sums = band.sums + row / band.segment_rows * band.sums_step;
        std::fill(sums + part.first_channel, sums + sdk::round_up(part.end_channel, width), 0.0);
      }
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

/// Adds the segments' sums in their order.
template <class S>
void run_means(const MeansOfImage& of, S* means) {
  const Wide<double> d;
  const auto pixels = hn::Set(d, static_cast<double>(of.pixels));
  HWY_ALIGN double quotients[HWY_MAX_BYTES / sizeof(double)];
  for (std::int64_t c = 0; c < of.channels; c += lanes(d)) {
    auto total = hn::LoadU(d, of.sums + c);
    for (std::int64_t s = 1; s < of.segments; ++s) total = hn::Add(total, hn::LoadU(d, of.sums + s * of.step + c));
    hn::Store(hn::Div(total, pixels), d, quotients);
    const std::int64_t n = std::min(lanes(d), of.channels - c);
    for (std::int64_t i = 0; i < n; ++i) means[c + i] = static_cast<S>(quotients[i]);
  }
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
// Into as many parts at most the rows of an image are divided for sums of their results, whatever the number of threads, so that the bits
// do not depend on it.
constexpr std::int64_t max_segments = 16;

std::int64_t segment_rows_of(const ConvGeometry& g) {
  return sdk::ceil_div(g.out_height, max_segments);
}
std::int64_t segments_of(const ConvGeometry& g) {
  return sdk::ceil_div(g.out_height, segment_rows_of(g));
}
/// Between the sums of two segments: whole vectors.
std::int64_t sums_step_of(const ConvGeometry& g) {
  return sdk::round_up(g.channels, few_rows_channels);
}

}  // namespace

std::size_t depthwise_means_scratch(const ConvGeometry& g) {
  return scratch_bytes(g.images * segments_of(g) * sums_step_of(g), sizeof(double));
}

PixelMeans::PixelMeans(const ConvGeometry& g, const sdk::Call& call, void* scratch) : g_(g) {
  if (!call.has_output(1)) return;
  means_ = &call.outputs[1];
  sums_ = static_cast<double*>(scratch);
  segment_rows_ = segment_rows_of(g);
  segments_ = segments_of(g);
  step_ = sums_step_of(g);
}

std::int64_t PixelMeans::first_row(std::int64_t row) const {
  return sums_ == nullptr ? row : std::min(g_.out_height, sdk::round_up(row, segment_rows_));
}

void PixelMeans::finish() const {
  if (sums_ == nullptr) return;
  for (std::int64_t image = 0; image < g_.images; ++image) {
    const MeansOfImage of{sums_ + image * segments_ * step_, step_, segments_, g_.channels, g_.out_pixels()};
    if (means_->dtype == TENON_DTYPE_F64) {
      TENON_DISPATCH(run_means<double>)(of, means_->as<double>() + image * g_.channels);
    } else {
      TENON_DISPATCH(run_means<float>)(of, means_->as<float>() + image * g_.channels);
    }
  }
}

template <class T>
void depthwise_band(const DepthwiseBand<T>& band) {
  TENON_DISPATCH(run_band<T>)(band);
}
template void depthwise_band(const DepthwiseBand<sdk::BFloat16>&);
template void depthwise_band(const DepthwiseBand<float>&);
template void depthwise_band(const DepthwiseBand<double>&);

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
void depthwise_tiles(const ConvGeometry& g, const sdk::Call& call, const T* x, const T* w, const T* bias, T* y, void* scratch) {
  const std::int64_t work = g.out_pixels() * g.taps();
  // Threads take bands of rows, which they have often written themselves in the layer before. If there are few, they take channels.
  const std::int64_t workers = worker_count(call.host, g.out_height);
  const bool by_rows = g.height >= 3 * workers;
  const std::int64_t bands = by_rows ? workers * std::max<std::int64_t>(1, g.out_height / (2 * min_rows * workers)) : 1;
  const std::int64_t channels = by_rows ? g.channels : std::min(few_rows_channels, g.channels);
  const std::int64_t blocks = sdk::ceil_div(g.channels, channels);
  const T* const residual = call.epilogue.residual == nullptr ? nullptr : call.epilogue.residual->as<const T>();
  const PixelMeans means(g, call, scratch);
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
    part.first_row = means.first_row(band * g.out_height / bands);
    part.end_row = means.first_row((band + 1) * g.out_height / bands);
    part.first_channel = block * channels;
    part.end_channel = std::min(g.channels, part.first_channel + channels);
    means.describe(part, image);
    depthwise_band(part);
  };
  const std::int64_t tasks = g.images * bands * blocks;
  if (g.images * work * g.channels < divided_work) {
    for (std::int64_t task = 0; task < tasks; ++task) run(task, 0);
  } else {
    for_each_task(call.host, tasks, run);
  }
  means.finish();
}

template void depthwise_tiles(const ConvGeometry&, const sdk::Call&, const sdk::BFloat16*, const sdk::BFloat16*, const sdk::BFloat16*,
                              sdk::BFloat16*, void*);
template void depthwise_tiles(const ConvGeometry&, const sdk::Call&, const float*, const float*, const float*, float*, void*);
template void depthwise_tiles(const ConvGeometry&, const sdk::Call&, const double*, const double*, const double*, double*, void*);

}  // namespace tenon::openblas
#endif
