// SPDX-License-Identifier: Apache-2.0
// ops/lrn.cpp - local response normalisation: windows over the channels of a pixel, which are adjacent.
#include "simd/foreach_target.h"

#include <algorithm>
#include <cmath>

#include "simd/partial_vectors.h"
#include "simd/wide_math.h"

#include <tenon/sdk/kernel.h>

#ifndef TENON_OPENBLAS_LRN_PIXELS
#define TENON_OPENBLAS_LRN_PIXELS
namespace tenon::openblas {
namespace {

/// The window, clipped to the number of channels, and the coefficients of the formula.
struct Window {
  std::int64_t before, after;
  double slope;  ///< alpha / size
  double beta, bias;
};

/// Working memory for one pixel of n channels.
template <class T>
struct PixelBuffers {
  T* padded;  ///< before + n + after, and one vector more
  T* base;    ///< n
  T* power;   ///< n
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// b^(-3/4), the exponent of every published network.
struct ThreeQuarters {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V b) const {
    const V root = hn::Sqrt(b);
    return hn::Div(hn::Set(d, 1), hn::Mul(root, hn::Sqrt(root)));
  }
};

/// b^exponent for b > 0, infinite or NaN.
struct Power {
  double exponent;
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector b) const {
    return exp_wide(d, hn::Mul(with_ends_of_log(d, b, log_wide(d, b)), hn::Set(d, exponent)));
  }
};

HWY_INLINE void powers(const float* base, float* power, std::int64_t n, double beta) {
  if (beta == 0.75) return map(ThreeQuarters{}, base, power, n);
  map_wide(Power{-beta}, base, power, n);
}
HWY_INLINE void powers(const double* base, double* power, std::int64_t n, double beta) {
  if (beta == 0.75) return map(ThreeQuarters{}, base, power, n);
  for (std::int64_t i = 0; i < n; ++i) power[i] = std::pow(base[i], -beta);
}

/// The sum of `count` neighbours from p on, lane by lane.
template <class D>
HWY_INLINE hn::Vec<D> window_sum(D d, const hn::TFromD<D>* p, std::int64_t count) {
  auto sum = hn::LoadU(d, p);
  for (std::int64_t k = 1; k < count; ++k) sum = hn::Add(sum, hn::LoadU(d, p + k));
  return sum;
}

/// Computes base and power of a pixel.
template <class T>
void bases(const Window& window, const T* x, std::int64_t n, const PixelBuffers<T>& buffers) {
  const Wide<T> d;
  T* const squares = buffers.padded + window.before;
  std::fill_n(buffers.padded, window.before, T{0});
  std::fill_n(squares + n, window.after + lanes(d), T{0});
  across<T>(n, [&](std::int64_t i, std::int64_t m) HWY_ATTR {
    const auto v = load(d, x + i, m);
    store(hn::Mul(v, v), d, squares + i, m);
  });
  const auto slope = hn::Set(d, static_cast<T>(window.slope)), bias = hn::Set(d, static_cast<T>(window.bias));
  across<T>(n, [&](std::int64_t i, std::int64_t m) HWY_ATTR {
    store(hn::MulAdd(window_sum(d, buffers.padded + i, window.before + window.after + 1), slope, bias), d, buffers.base + i, m);
  });
  powers(buffers.base, buffers.power, n, window.beta);
}

/// y = x base^-beta
template <class T>
void pixel(const Window& window, const T* x, T* y, std::int64_t n, const PixelBuffers<T>& buffers) {
  bases(window, x, n, buffers);
  const Wide<T> d;
  across<T>(
      n, [&](std::int64_t i, std::int64_t m) HWY_ATTR { store(hn::Mul(load(d, x + i, m), load(d, buffers.power + i, m)), d, y + i, m); });
}

/// dx = dy base^-beta - 2 alpha beta / size x (sum of dy x base^(-beta - 1) over the windows that contain the channel)
template <class T>
void pixel_grad(const Window& window, const T* dy, const T* x, T* dx, std::int64_t n, const PixelBuffers<T>& buffers) {
  bases(window, x, n, buffers);
  const Wide<T> d;
  // Channel c is in the windows of c - after ... c + before.
  T* const terms = buffers.padded + window.after;
  std::fill_n(buffers.padded, window.after, T{0});
  std::fill_n(terms + n, window.before + lanes(d), T{0});
  const auto one = hn::Set(d, 1);
  across<T>(n, [&](std::int64_t i, std::int64_t m) HWY_ATTR {
    const auto product = hn::Mul(hn::Mul(load(d, dy + i, m), load(d, x + i, m)), load(d, buffers.power + i, m));
    const auto base = load(d, buffers.base + i, m, 1);
    store(hn::Mul(product, hn::Div(one, base)), d, terms + i, m);
  });
  const auto by = hn::Set(d, static_cast<T>(-2 * window.beta * window.slope));
  across<T>(n, [&](std::int64_t i, std::int64_t m) HWY_ATTR {
    const auto others = hn::Mul(window_sum(d, buffers.padded + i, window.before + window.after + 1), by);
    const auto own = hn::Mul(load(d, dy + i, m), load(d, buffers.power + i, m));
    store(hn::MulAdd(load(d, x + i, m), others, own), d, dx + i, m);
  });
}

/// Processes `count` consecutive pixels; forward if dy is NULL.
template <class T>
void run_pixels(const Window& window, const T* dy, const T* x, T* out, std::int64_t count, std::int64_t n, const PixelBuffers<T>& buffers) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (dy == nullptr) {
      pixel(window, x + i * n, out + i * n, n, buffers);
    } else {
      pixel_grad(window, dy + i * n, x + i * n, out + i * n, n, buffers);
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

// Elements worth a thread of their own: about 20 us of roots and quotients.
constexpr std::int64_t grain = 8 * 1024;
constexpr std::int64_t vector_padding = 64;  // elements; no vector holds more

/// The pixels of x, divided into parts with their own scratch memory.
struct Pixels {
  sdk::AxisView view;
  std::int64_t count;
  std::int64_t parts;

  explicit Pixels(const sdk::Operand& x) {
    const bool image = x.rank == 3 || x.rank == 4;  // stored with channels last
    view = sdk::around_axis(x, image ? std::int64_t{x.rank} - 1 : 1);
    count = view.outer * view.inner;
    parts = std::clamp<std::int64_t>(count * view.n / grain, 1, 64);
  }
};

Window window_of(const tenon_attributes_lrn& by, std::int64_t n) {
  return {std::min((by.size - 1) / 2, n), std::min(by.size / 2, n), by.alpha / static_cast<double>(by.size), by.beta, by.bias};
}

/// Elements of scratch memory for one part: PixelBuffers, and copies of a pixel's operands and result unless channels come last.
std::int64_t part_size(const Pixels& pixels, const Window& window) {
  const std::int64_t n = pixels.view.n;
  return window.before + 3 * n + window.after + vector_padding + (pixels.view.inner == 1 ? 0 : 3 * n);
}

template <std::uint32_t x>
std::size_t scratch(const sdk::Call& call) {
  const Pixels pixels(call.inputs[x]);
  const Window window = window_of(call.attr<tenon_attributes_lrn>(), pixels.view.n);
  const std::size_t element = call.inputs[x].dtype == TENON_DTYPE_F64 ? sizeof(double) : sizeof(float);
  return static_cast<std::size_t>(pixels.parts * part_size(pixels, window)) * element;
}

template <class T>
void over_pixels(const sdk::Call& call, const T* dy, const T* x, T* out) {
  const Pixels pixels(call.inputs[0]);
  const std::int64_t channels = pixels.view.n, step = pixels.view.inner;
  if (channels == 0) return;
  const Window window = window_of(call.attr<tenon_attributes_lrn>(), channels);
  const std::int64_t size = part_size(pixels, window);
  const auto run = TENON_DISPATCH(run_pixels<T>);
  call.host.parallel_for(pixels.parts, 1, [&](std::int64_t first_part, std::int64_t last_part) {
    for (std::int64_t part = first_part; part < last_part; ++part) {
      T* const memory = static_cast<T*>(call.scratch) + part * size;
      const PixelBuffers<T> buffers{memory + 2 * channels, memory, memory + channels};
      const std::int64_t begin = pixels.count * part / pixels.parts, end = pixels.count * (part + 1) / pixels.parts;
      if (step == 1) {
        run(window, dy == nullptr ? nullptr : dy + begin * channels, x + begin * channels, out + begin * channels, end - begin, channels,
            buffers);
        continue;
      }
      T* const copy = memory + size - 3 * channels;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t at = i / step * channels * step + i % step;
        for (std::int64_t c = 0; c < channels; ++c) {
          copy[c] = x[at + c * step];
          if (dy != nullptr) copy[channels + c] = dy[at + c * step];
        }
        run(window, dy == nullptr ? nullptr : copy + channels, copy, copy + 2 * channels, 1, channels, buffers);
        for (std::int64_t c = 0; c < channels; ++c) out[at + c * step] = copy[2 * channels + c];
      }
    }
  });
}

/// y = x / (bias + alpha / size sum x^2)^beta
template <class T>
void lrn(const sdk::Call& call) {
  over_pixels<T>(call, nullptr, call.input<T>(0), call.output<T>(0));
}

/// dx = dy d^-beta - 2 alpha beta / size x sum(dy x d^(-beta - 1))
template <class T>
void lrn_grad(const sdk::Call& call) {
  over_pixels<T>(call, call.input<T>(0), call.input<T>(1), call.output<T>(0));
}

}  // namespace

TENON_KERNEL_WITH(lrn, (sdk::Traits{.in_place = true, .channels_last = {.inputs = 0b1, .outputs = 0b1}, .scratch = scratch<0>}), float,
                  double)
TENON_KERNEL_WITH(lrn_grad, (sdk::Traits{.in_place = true, .channels_last = {.inputs = 0b11, .outputs = 0b1}, .scratch = scratch<0>}),
                  float, double)

}  // namespace tenon::openblas
#endif
