// SPDX-License-Identifier: Apache-2.0
#include "conv/winograd_weights.h"

#include "elementwise/transpose.h"
#include "gemm/panels.h"
#include "simd/foreach_target.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

#include <tenon/sdk/rounding.h>

#include "conv/winograd_forms.h"
#include "elementwise/half.h"
#include "simd/bf16.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// The vectors that weights are transformed in: weights of f32 in double, those of bf16, of fewer digits, in f32.
template <class T>
using WeightLanes = Wide<std::conditional_t<std::is_same_v<T, sdk::BFloat16>, float, double>>;

HWY_INLINE hn::Vec<Wide<double>> load_weights(Wide<double> d, const float* p) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, Wide<double>>(), p));
}
HWY_INLINE hn::Vec<Floats> load_weights(Floats d, const sdk::BFloat16* p) {
  return load_stored(d, p);
}
HWY_INLINE void store_weights(hn::Vec<Wide<double>> v, Wide<double>, float* p) {
  const hn::Rebind<float, Wide<double>> narrow;
  hn::StoreU(hn::DemoteTo(narrow, v), narrow, p);
}
HWY_INLINE void store_weights(hn::Vec<Floats> v, Floats d, float* p) {
  hn::StoreU(v, d, p);
}

/// G w G' of one channel and `width` output channels, whose taps are at w[tap * width + o], or with `rotated` in the opposite order; the
/// values to out_values.
template <class Form, class T>
void transform_weights(const T* w, bool rotated, float* const (&out_values)[winograd_max_values]) {
  using D = WeightLanes<T>;
  using W = hn::Vec<D>;
  const D d;
  constexpr std::int64_t width = panel_width<float>;
  constexpr int taps = Form::taps, reach = Form::reach;
  const auto transform = [&](const W(&c)[taps], W(&t)[reach]) HWY_ATTR {
    for (int i = 0; i < reach; ++i) {
      t[i] = hn::Zero(d);
      for (int k = 0; k < taps; ++k) {
        const double g = Form::g[i][static_cast<std::size_t>(k)];
        if (g != 0) t[i] = hn::MulAdd(hn::Set(d, static_cast<hn::TFromD<D>>(g)), c[k], t[i]);
      }
    }
  };
  const std::int64_t first = rotated ? (taps * taps - 1) * width : 0, step = rotated ? -width : width;
  for (std::int64_t o = 0; o < width; o += lanes(d)) {
    W half[reach][taps];
    for (int b = 0; b < taps; ++b) {
      W column[taps], t[reach];
      for (int a = 0; a < taps; ++a) column[a] = load_weights(d, w + first + (taps * a + b) * step + o);
      transform(column, t);
      for (int i = 0; i < reach; ++i) half[i][b] = t[i];
    }
    for (int i = 0; i < reach; ++i) {
      W t[reach];
      transform(half[i], t);
      for (int j = 0; j < reach; ++j) store_weights(t[j], d, out_values[i * reach + j] + o);
    }
  }
}

template <class T>
void transform_weights_of(const WinogradConv& conv, const T* w, bool rotated, float* const (&out_values)[winograd_max_values]) {
  with_winograd_form(conv, [&]<class Form>(Form) { transform_weights<Form>(w, rotated, out_values); });
}

/// Copies n elements, whole cache lines, past the caches.
void stream_lines(const float* from, std::int64_t n, float* to) {
  const Floats d;
  for (std::int64_t i = 0; i < n; i += lanes(d)) hn::Stream(hn::Load(d, from + i), d, to + i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

std::array<WinogradMatrix, winograd_max_values> winograd_matrices(const WinogradConv& conv) {
  std::array<WinogradMatrix, winograd_max_values> matrices{};
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < conv.points(); ++i) {
    for (std::int64_t j = 0; j < conv.points(); ++j) {
      const std::int64_t k = conv.values_of(i) * conv.values_of(j) * conv.channels;
      matrices[static_cast<std::size_t>(i * conv.points() + j)] = {k, at};
      at += panel_elements<float>(k, conv.out_channels);
    }
  }
  return matrices;
}

std::int64_t winograd_weight_elements(const WinogradConv& conv) {
  const WinogradMatrix last = winograd_matrices(conv)[static_cast<std::size_t>(conv.points() * conv.points() - 1)];
  return last.at + panel_elements<float>(last.k, conv.out_channels);
}

std::int64_t winograd_weight_bytes(const WinogradConv& conv) {
  return winograd_weight_elements(conv) * static_cast<std::int64_t>(sizeof(float));
}

std::string winograd_packing_key(const WinogradConv& conv) {
  return "winograd " + std::to_string(conv.results) + ", stride " + std::to_string(conv.stride);
}

template <class T>
void winograd_weights(const WinogradConv& conv, const sdk::Host& host, const T* w, std::int64_t channel_step, std::int64_t out_channel_step,
                      bool rotated, float* out_weights) {
  constexpr std::int64_t width = panel_width<float>, block = 16;  // channels whose weights are read, and written, together
  const std::int64_t blocks = sdk::ceil_div(conv.channels, block), count = conv.taps * conv.taps;
  const std::array<WinogradMatrix, winograd_max_values> matrices = winograd_matrices(conv);
  const bool streams = winograd_weight_bytes(conv) > distant_winograd_weights;
  host.parallel_for(panel_count<float>(conv.out_channels) * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) T taps[block * winograd_max_taps * width];
    alignas(64) float values[winograd_max_values * block * width];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t panel = i / blocks, first = panel * width, n = std::min(width, conv.out_channels - first);
      const std::int64_t channel = i % blocks * block, channels = std::min(block, conv.channels - channel);
      // Transpose to taps[channel][tap][out channel]: one matrix of all channels whose taps follow each other, or one for each channel.
      if (n < width) std::fill(std::begin(taps), std::end(taps), T{});
      const T* const from = w + channel * channel_step + first * out_channel_step;
      if (channel_step == count) {
        transpose_block(from, out_channel_step, taps, width, channels * count, n);
      } else {
        for (std::int64_t c = 0; c < channels; ++c) {
          transpose_block(from + c * channel_step, out_channel_step, taps + c * count * width, width, count, n);
        }
      }
      for (std::int64_t c = 0; c < channels; ++c) {
        float* to_values[winograd_max_values];
        for (std::int64_t value = 0; value < winograd_max_values; ++value) to_values[value] = values + (value * block + c) * width;
        TENON_DISPATCH(transform_weights_of<T>)(conv, taps + c * count * width, rotated, to_values);
      }
      // The matrices of all values may lie at distances of a power of two: their lines would evict each other if they were written in
      // turns.
      for_each_winograd_value(conv, [&](std::int64_t value, std::int64_t a, std::int64_t b, std::int64_t part) {
        const WinogradMatrix& matrix = matrices[static_cast<std::size_t>(a * conv.points() + b)];
        const std::int64_t line = part * conv.channels + channel;
        float* const out = out_weights + matrix.at + panel * panel_step<float>(matrix.k) + line * width;
        const float* const of_value = values + value * block * width;
        if (streams) {
          TENON_DISPATCH(stream_lines)(of_value, channels * width, out);
        } else {
          std::copy_n(of_value, channels * width, out);
        }
      });
    }
    if (streams) hwy::FlushStream();
  });
}

#define TENON_INSTANTIATE_WINOGRAD_WEIGHTS(T) \
  template void winograd_weights(const WinogradConv&, const sdk::Host&, const T*, std::int64_t, std::int64_t, bool, float*);
TENON_INSTANTIATE_WINOGRAD_WEIGHTS(sdk::BFloat16)
TENON_INSTANTIATE_WINOGRAD_WEIGHTS(float)

}  // namespace tenon::openblas
#endif
