// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_depthwise.h"

#include "simd/foreach_target.h"

#include <algorithm>
#include <numeric>

#include <tenon/sdk/rounding.h>

#include "conv/conv_depthwise_tiles.h"
#include "conv/depthwise_vectors.h"
#include "elementwise/half.h"

#ifndef TENON_OPENBLAS_DEPTHWISE_LINE
#define TENON_OPENBLAS_DEPTHWISE_LINE
namespace tenon::openblas {
namespace {

/// The terms of one result along one dimension: tap `kernel` + i kernel_step of the weights times position `source` + i source_step of the
/// operand, 0 <= i < count.
struct Taps {
  std::int64_t count = 0;
  std::int64_t kernel = 0, kernel_step = 1;
  std::int64_t source = 0, source_step = 1;
};

/// Neighbouring pixels of a line of results.
template <class T>
struct Line {
  Taps rows;
  const Taps* columns = nullptr;  ///< of each pixel
  std::int64_t n = 0;             ///< pixels
  std::int64_t channels = 0;
  const T* x = nullptr;  ///< the image
  std::int64_t x_line = 0;
  const T* w = nullptr;
  std::int64_t w_line = 0;
  const T* bias = nullptr;
  const T* residual = nullptr;
  sdk::Activation activation = {};
  T* y = nullptr;
};

/// One tap's part of the weight gradient: n pixels of dy and the pixels of x under the tap.
template <class T>
struct TapSum {
  const T* dy = nullptr;
  const T* x = nullptr;
  std::int64_t x_step = 0;
  std::int64_t n = 0;
  std::int64_t channels = 0;
  SumOf<T>* sums = nullptr;
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// Computes `registers` vectors of channels from `channel` on, of `pixels` pixels from j on, whose taps are the same, `source_step` apart.
template <int pixels, int registers, bool part, class T>
HWY_INLINE void block(const Line<T>& line, const SumActivation<Computed<T>>& activation, std::int64_t j, std::int64_t source_step,
                      std::int64_t channel) {
  const Wide<Computed<T>> d;
  const Channels<T, part> access{line.channels - channel};
  const Taps& columns = line.columns[j];
  hn::Vec<Wide<Computed<T>>> sums[pixels][registers];
  for (auto& sum : sums) {
    for (int i = 0; i < registers; ++i) sum[i] = hn::Zero(d);
  }
  const T* x_row = line.x + line.rows.source * line.x_line + columns.source * line.channels + channel;
  const T* w_row = line.w + line.rows.kernel * line.w_line + columns.kernel * line.channels + channel;
  const std::int64_t x_step = columns.source_step * line.channels;
  const std::int64_t w_step = columns.kernel_step * line.channels;
  const std::int64_t pixel_step = source_step * line.channels;
  for (std::int64_t r = 0; r < line.rows.count; ++r) {
    const T* x = x_row;
    const T* w = w_row;
    for (std::int64_t t = 0; t < columns.count; ++t, x += x_step, w += w_step) {
      for (int i = 0; i < registers; ++i) {
        const auto weight = access.load(w + i * lanes(d));
        for (int p = 0; p < pixels; ++p) {
          sums[p][i] = hn::MulAdd(access.load(x + p * pixel_step + i * lanes(d)), weight, sums[p][i]);
        }
      }
    }
    x_row += line.rows.source_step * line.x_line;
    w_row += line.rows.kernel_step * line.w_line;
  }
  for (int p = 0; p < pixels; ++p) {
    const std::int64_t at = (j + p) * line.channels + channel;
    for (int i = 0; i < registers; ++i) {
      auto& v = sums[p][i];
      if (line.bias != nullptr) v = hn::Add(v, access.load(line.bias + channel + i * lanes(d)));
      if (line.residual != nullptr) v = hn::Add(v, access.load(line.residual + at + i * lanes(d)));
    }
    activation(sums[p]);
    for (int i = 0; i < registers; ++i) access.store(sums[p][i], line.y + at + i * lanes(d));
  }
}

template <int pixels, int registers, class T>
void pixels_of(const Line<T>& line, const SumActivation<Computed<T>>& activation, std::int64_t j, std::int64_t source_step) {
  const std::int64_t width = lanes(Wide<Computed<T>>());
  std::int64_t c = 0;
  for (; c + registers * width <= line.channels; c += registers * width) {
    block<pixels, registers, false>(line, activation, j, source_step, c);
  }
  for (; c + width <= line.channels; c += width) block<pixels, 1, false>(line, activation, j, source_step, c);
  if (c < line.channels) block<pixels, 1, true>(line, activation, j, source_step, c);
}

template <class T>
void run_line(const Line<T>& line) {
  const SumActivation<Computed<T>> activation(line.activation);
  constexpr int together = 4;
  for (std::int64_t j = 0; j < line.n;) {
    // Pixels with the same taps share loaded weights: all but those at the borders and between strides.
    const Taps& first = line.columns[j];
    const std::int64_t step = j + 1 < line.n ? line.columns[j + 1].source - first.source : 0;
    bool alike = j + together <= line.n;
    for (int p = 1; p < together && alike; ++p) {
      const Taps& taps = line.columns[j + p];
      alike = taps.count == first.count && taps.kernel == first.kernel && taps.source == first.source + p * step;
    }
    if (alike) {
      pixels_of<together, 2>(line, activation, j, step);
    } else {
      pixels_of<1, 4>(line, activation, j, 0);
    }
    j += alike ? together : 1;
  }
}

/// Sums over the pixels of a line in registers, then adds the line's sum, which keeps rounding errors small.
template <int registers, bool part, class T>
HWY_INLINE void tap_channels(const TapSum<T>& tap, std::int64_t channel) {
  const Wide<Computed<T>> d;
  const Channels<T, part> access{tap.channels - channel};
  const Channels<Computed<T>, part> totals{tap.channels - channel};
  const T* dy = tap.dy + channel;
  const T* x = tap.x + channel;
  hn::Vec<Wide<Computed<T>>> sums[registers];
  for (int i = 0; i < registers; ++i) sums[i] = hn::Zero(d);
  for (std::int64_t j = 0; j < tap.n; ++j, dy += tap.channels, x += tap.x_step) {
    for (int i = 0; i < registers; ++i) {
      sums[i] = hn::MulAdd(access.load(dy + i * lanes(d)), access.load(x + i * lanes(d)), sums[i]);
    }
  }
  for (int i = 0; i < registers; ++i) {
    Computed<T>* const out = tap.sums + channel + i * lanes(d);
    totals.store(hn::Add(totals.load(out), sums[i]), out);
  }
}

template <class T>
void run_tap(const TapSum<T>& tap) {
  const std::int64_t width = lanes(Wide<Computed<T>>());
  std::int64_t c = 0;
  for (; c + 4 * width <= tap.channels; c += 4 * width) tap_channels<4, false>(tap, c);
  for (; c + width <= tap.channels; c += width) tap_channels<1, false>(tap, c);
  if (c < tap.channels) tap_channels<1, true>(tap, c);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Multiply-adds of weight gradients worth a thread, about 20 us.
constexpr std::int64_t grain = 256 * 1024;
// Multiply-adds of lines that are divided among threads at all, and of a piece: about 2 us and 0.5 us.
constexpr std::int64_t divided_work = 64 * 1024, piece_work = 16 * 1024;
// The largest number of parts into which the lines are divided for weight gradients.
constexpr std::int64_t target_slots = 32;
// Pixels whose taps are computed together, for all lines of a task.
constexpr std::int64_t strip = 128;

/// One dimension of a convolution.
struct Axis {
  std::int64_t size, out_size;
  std::int64_t kernel, stride, dilation, pad;

  /// The taps of result i.
  Taps forward(std::int64_t i) const {
    const std::int64_t first = i * stride - pad;  // the position of tap 0
    Taps taps;
    taps.kernel = first >= 0 ? 0 : sdk::ceil_div(-first, dilation);
    taps.count = (first >= size ? 0 : std::min(kernel, sdk::ceil_div(size - first, dilation))) - taps.kernel;
    if (taps.count <= 0) return {};
    taps.source = first + taps.kernel * dilation;
    taps.source_step = dilation;
    return taps;
  }

  /// The taps by which element i of the input contributes to results: i + pad - tap dilation = result stride.
  Taps input_grad(std::int64_t i) const {
    const std::int64_t divisor = std::gcd(stride, dilation);
    Taps taps;
    taps.kernel_step = stride / divisor;
    taps.source_step = -(dilation / divisor);
    const std::int64_t last_source = out_size - 1;
    for (std::int64_t tap = 0; tap < std::min(kernel, taps.kernel_step); ++tap) {
      const std::int64_t place = i + pad - tap * dilation;
      if (place % stride != 0) continue;
      // From here on every kernel_step'th tap contributes, unless it is past the end (first taps) or before the start (last taps).
      const std::int64_t source = place / stride;
      const std::int64_t skipped = source > last_source ? sdk::ceil_div(source - last_source, -taps.source_step) : 0;
      taps.kernel = tap + skipped * taps.kernel_step;
      taps.source = source + skipped * taps.source_step;
      if (taps.kernel >= kernel || taps.source < 0) return {};
      taps.count = std::min((kernel - 1 - taps.kernel) / taps.kernel_step, taps.source / -taps.source_step) + 1;
      return taps;
    }
    return {};
  }
};

Axis rows_of(const ConvGeometry& g) {
  return {g.height, g.out_height, g.kernel_height, g.stride_height, g.dilation_height, g.pad_top};
}
Axis columns_of(const ConvGeometry& g) {
  return {g.width, g.out_width, g.kernel_width, g.stride_width, g.dilation_width, g.pad_left};
}

template <class T>
Line<T> shared_by_lines(const ConvGeometry& g, const sdk::Epilogue& epilogue, const T* x, std::int64_t x_width, const T* w, const T* bias,
                        T* y) {
  Line<T> line;
  line.channels = g.channels;
  line.x = x;
  line.x_line = x_width * g.channels;
  line.w = w;
  line.w_line = g.kernel_width * g.channels;
  line.bias = bias;
  if (epilogue.residual != nullptr) line.residual = epilogue.residual->as<const T>();
  line.activation = epilogue.activation;
  line.y = y;
  return line;
}

/// Computes each line of `height` x `width` results from the taps that Axis::*taps returns; `shared` has the fields common to all lines.
template <class T>
void lines(const ConvGeometry& g, const sdk::Host& host, Taps (Axis::*taps)(std::int64_t) const, std::int64_t height, std::int64_t width,
           std::int64_t x_height, const Line<T>& shared) {
  const Axis rows = rows_of(g);
  const Axis columns = columns_of(g);
  const std::int64_t work = std::max<std::int64_t>(1, width * g.channels * g.taps());
  const std::int64_t count = g.images * height;
  const std::int64_t piece = count * work < divided_work ? count : std::max<std::int64_t>(1, piece_work / work);
  host.parallel_for(count, piece, [&](std::int64_t begin, std::int64_t end) {
    Taps strip_taps[strip];
    for (std::int64_t first = 0; first < width; first += strip) {
      Line<T> line = shared;
      line.n = std::min(strip, width - first);
      line.columns = strip_taps;
      for (std::int64_t j = 0; j < line.n; ++j) strip_taps[j] = (columns.*taps)(first + j);
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t at = (i * width + first) * g.channels;
        line.rows = (rows.*taps)(i % height);
        line.x = shared.x + i / height * x_height * shared.x_line;
        line.y = shared.y + at;
        if (shared.residual != nullptr) line.residual = shared.residual + at;
        TENON_DISPATCH(run_line<T>)(line);
      }
    }
  });
}

struct Slots {
  explicit Slots(const ConvGeometry& g) {
    const std::int64_t lines = g.images * g.out_height;
    const std::int64_t work = std::max<std::int64_t>(1, g.out_width * g.channels * g.taps());
    const std::int64_t min_lines = std::max<std::int64_t>(8, grain / work);  // lines worth their own sums
    slot_lines = std::max(min_lines, sdk::ceil_div(lines, target_slots));
    count = sdk::ceil_div(lines, slot_lines);
  }
  std::int64_t slot_lines, count;
};

}  // namespace

template <class T>
void depthwise_forward(const ConvGeometry& g, const sdk::Call& call, const T* x, const T* w, const T* bias, T* y, void* scratch) {
  if (depthwise_tiles_fit(g)) return depthwise_tiles(g, call, x, w, bias, y, scratch);
  const Line<T> line = shared_by_lines(g, call.epilogue, x, g.width, w, bias, y);
  lines(g, call.host, &Axis::forward, g.out_height, g.out_width, g.height, line);
}

template <class T>
void depthwise_transpose(const ConvGeometry& g, const sdk::Call& call, const T* x, const T* w, const T* bias, T* y) {
  const Line<T> line = shared_by_lines(g, call.epilogue, x, g.out_width, w, bias, y);
  lines(g, call.host, &Axis::input_grad, g.height, g.width, g.out_height, line);
}

template <class T>
void depthwise_input_grad(const ConvGeometry& g, const sdk::Call& call, const T* dy, const T* w, T* dx) {
  depthwise_transpose<T>(g, call, dy, w, nullptr, dx);
}

template <class T>
std::size_t depthwise_weight_grad_scratch(const ConvGeometry& g) {
  return scratch_bytes(Slots(g).count * g.weights(), sizeof(SumOf<T>));
}

template <class T>
void depthwise_weight_grad(const ConvGeometry& g, const sdk::Call& call, const T* dy, const T* x, T* dw) {
  // The slots depend only on the geometry, so the bits do not depend on the number of threads.
  const Slots slots(g);
  const Axis rows = rows_of(g);
  const Axis columns = columns_of(g);
  SumOf<T>* const sums = static_cast<SumOf<T>*>(call.scratch);
  call.host.parallel_for(slots.count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slot = begin; slot < end; ++slot) {
      std::fill_n(sums + slot * g.weights(), g.weights(), SumOf<T>(0));
      const std::int64_t last = std::min(g.images * g.out_height, (slot + 1) * slots.slot_lines);
      for (std::int64_t i = slot * slots.slot_lines; i < last; ++i) {
        const T* const dy_line = dy + i * g.out_width * g.channels;
        const T* const image = x + i / g.out_height * g.height * g.width * g.channels;
        const Taps down = rows.forward(i % g.out_height);
        for (std::int64_t a = down.kernel; a < down.kernel + down.count; ++a) {
          const T* const x_line = image + (down.source + (a - down.kernel) * down.source_step) * g.width * g.channels;
          for (std::int64_t b = 0; b < g.kernel_width; ++b) {
            // The pixels [first, end_column) of dy for which this tap lies in the line.
            const std::int64_t place = b * columns.dilation - columns.pad;
            const std::int64_t first = place >= 0 ? 0 : sdk::ceil_div(-place, columns.stride);
            const std::int64_t end_column =
                place >= columns.size ? 0 : std::min(columns.out_size, sdk::ceil_div(columns.size - place, columns.stride));
            if (end_column <= first) continue;
            TapSum<T> tap;
            tap.dy = dy_line + first * g.channels;
            tap.x = x_line + (first * columns.stride + place) * g.channels;
            tap.x_step = columns.stride * g.channels;
            tap.n = end_column - first;
            tap.channels = g.channels;
            tap.sums = sums + slot * g.weights() + (a * g.kernel_width + b) * g.channels;
            TENON_DISPATCH(run_tap<T>)(tap);
          }
        }
      }
    }
  });
  for (std::int64_t slot = 1; slot < slots.count; ++slot) {
    const SumOf<T>* const part = sums + slot * g.weights();
    for (std::int64_t i = 0; i < g.weights(); ++i) sums[i] += part[i];
  }
  for (std::int64_t c = 0; c < g.channels; ++c) {
    for (std::int64_t t = 0; t < g.taps(); ++t) dw[c * g.taps() + t] = slots.count == 0 ? T{} : rounded_to<T>(sums[t * g.channels + c]);
  }
}

template <class T>
void depthwise_weights(const ConvGeometry& g, const T* w, T* out_w) {
  for (std::int64_t t = 0; t < g.taps(); ++t) {
    for (std::int64_t c = 0; c < g.channels; ++c) out_w[t * g.channels + c] = w[c * g.taps() + t];
  }
}

template std::size_t depthwise_weight_grad_scratch<sdk::BFloat16>(const ConvGeometry&);
template std::size_t depthwise_weight_grad_scratch<float>(const ConvGeometry&);
template std::size_t depthwise_weight_grad_scratch<double>(const ConvGeometry&);
template void depthwise_forward<sdk::BFloat16>(const ConvGeometry&, const sdk::Call&, const sdk::BFloat16*, const sdk::BFloat16*,
                                               const sdk::BFloat16*, sdk::BFloat16*, void*);
template void depthwise_forward<float>(const ConvGeometry&, const sdk::Call&, const float*, const float*, const float*, float*, void*);
template void depthwise_forward<double>(const ConvGeometry&, const sdk::Call&, const double*, const double*, const double*, double*, void*);
template void depthwise_transpose<sdk::BFloat16>(const ConvGeometry&, const sdk::Call&, const sdk::BFloat16*, const sdk::BFloat16*,
                                                 const sdk::BFloat16*, sdk::BFloat16*);
template void depthwise_transpose<float>(const ConvGeometry&, const sdk::Call&, const float*, const float*, const float*, float*);
template void depthwise_transpose<double>(const ConvGeometry&, const sdk::Call&, const double*, const double*, const double*, double*);
template void depthwise_input_grad<sdk::BFloat16>(const ConvGeometry&, const sdk::Call&, const sdk::BFloat16*, const sdk::BFloat16*,
                                                  sdk::BFloat16*);
template void depthwise_input_grad<float>(const ConvGeometry&, const sdk::Call&, const float*, const float*, float*);
template void depthwise_input_grad<double>(const ConvGeometry&, const sdk::Call&, const double*, const double*, double*);
template void depthwise_weight_grad<sdk::BFloat16>(const ConvGeometry&, const sdk::Call&, const sdk::BFloat16*, const sdk::BFloat16*,
                                                   sdk::BFloat16*);
template void depthwise_weight_grad<float>(const ConvGeometry&, const sdk::Call&, const float*, const float*, float*);
template void depthwise_weight_grad<double>(const ConvGeometry&, const sdk::Call&, const double*, const double*, double*);
template void depthwise_weights<sdk::BFloat16>(const ConvGeometry&, const sdk::BFloat16*, sdk::BFloat16*);
template void depthwise_weights<float>(const ConvGeometry&, const float*, float*);
template void depthwise_weights<double>(const ConvGeometry&, const double*, double*);

}  // namespace tenon::openblas
#endif
