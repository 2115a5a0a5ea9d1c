// SPDX-License-Identifier: Apache-2.0
// Convolution and its gradients by image and filters: one sum, evaluated in three directions.
#include <tenon/sdk/kernel.h>

#include <algorithm>
#include <vector>

#include "image.h"

namespace tenon::reference {
namespace {

/// The indices of one term x[n, c, place] w[o, c', tap] y[n, o, i].
///
/// Groups: filter o reads the channels of its group, c = o / (O / groups) * (C / groups) + c'.
struct Terms {
  std::int64_t batch, channels, filters, group_channels, group_filters;
  std::int64_t image, taps, results;  ///< elements of one channel of x, one filter of w, one channel of y
  Spatial result_sizes;
  Windows windows;

  Terms(const sdk::Call& call, const sdk::Operand& x, const sdk::Operand& w, const sdk::Operand& y)
      : batch(x.shape[0]),
        channels(x.shape[1]),
        filters(w.shape[0]),
        group_channels(w.shape[1]),
        group_filters(w.shape[0] / call.attr<tenon_attributes_conv>().groups),
        image(count_of(spatial_sizes(x))),
        taps(count_of(spatial_sizes(w))),
        results(count_of(spatial_sizes(y))),
        result_sizes(spatial_sizes(y)),
        windows(call.attr<tenon_attributes_conv>(), x.rank - 2, spatial_sizes(x), spatial_sizes(w)) {}

  /// body(x index, w index, y index) for every term of result i of filter o and image n.
  template <class Body>
  void for_each(std::int64_t n, std::int64_t o, const Spatial& i, std::int64_t index, Body&& body) const {
    const std::int64_t first = o / group_filters * group_channels;
    for (std::int64_t c = 0; c < group_channels; ++c) {
      const std::int64_t from_x = (n * channels + first + c) * image;
      const std::int64_t from_w = (o * group_channels + c) * taps;
      windows.for_each_tap(
          i, [&](std::int64_t tap, std::int64_t place) { body(from_x + place, from_w + tap, (n * filters + o) * results + index); });
    }
  }
};

/// y[n, o, i...] = b[o] + sum over c, k... of x[n, c, i strides + k dilations - pads_before] w[o, c, k...], zeros outside of x
///
/// Shapes  x (N, C, d...), w (O, C / groups, k...), b (O) or absent, y (N, O, o...); dense.
/// Dtypes  f32, f64; everything up to the final rounding is f64.
template <class T>
void conv(const sdk::Call& call) {
  const T* x = call.input<T>(0);
  const T* w = call.input<T>(1);
  const T* b = call.has_input(2) ? call.input<T>(2) : nullptr;
  T* y = call.output<T>(0);
  const Terms terms(call, call.inputs[0], call.inputs[1], call.outputs[0]);
  for (std::int64_t n = 0; n < terms.batch; ++n) {
    for (std::int64_t o = 0; o < terms.filters; ++o) {
      for_each_index(terms.result_sizes, [&](const Spatial& i, std::int64_t index) {
        double sum = b == nullptr ? 0 : double{b[o]};
        terms.for_each(n, o, i, index, [&](std::int64_t xi, std::int64_t wi, std::int64_t) { sum += double{x[xi]} * double{w[wi]}; });
        *y++ = static_cast<T>(sum);
      });
    }
  }
}

/// output 0 = the sums that add(sums, x index, w index, y index) adds to for every term of y
template <class T, class Add>
void sum_terms(const sdk::Call& call, const Terms& terms, const Add& add) {
  std::vector<double> sums(static_cast<std::size_t>(call.outputs[0].count));
  for (std::int64_t n = 0; n < terms.batch; ++n) {
    for (std::int64_t o = 0; o < terms.filters; ++o) {
      for_each_index(terms.result_sizes, [&](const Spatial& i, std::int64_t index) {
        terms.for_each(n, o, i, index, [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) { add(sums.data(), xi, wi, yi); });
      });
    }
  }
  std::transform(sums.begin(), sums.end(), call.output<T>(0), [](double sum) { return static_cast<T>(sum); });
}

/// dx[n, c, j...] = sum over all terms of y with x[n, c, j...] in them, of dy w
template <class T>
void conv_input_grad(const sdk::Call& call) {
  const T* dy = call.input<T>(0);
  const T* w = call.input<T>(1);
  sum_terms<T>(call, Terms(call, call.outputs[0], call.inputs[1], call.inputs[0]),
               [&](double* dx, std::int64_t xi, std::int64_t wi, std::int64_t yi) { dx[xi] += double{dy[yi]} * double{w[wi]}; });
}

/// dw[o, c, k...] = sum over all terms of y with w[o, c, k...] in them, of dy x
template <class T>
void conv_weight_grad(const sdk::Call& call) {
  const T* dy = call.input<T>(0);
  const T* x = call.input<T>(1);
  sum_terms<T>(call, Terms(call, call.inputs[1], call.outputs[0], call.inputs[0]),
               [&](double* dw, std::int64_t xi, std::int64_t wi, std::int64_t yi) { dw[wi] += double{dy[yi]} * double{x[xi]}; });
}

}  // namespace
TENON_KERNEL(conv, float, double)
TENON_KERNEL(conv_input_grad, float, double)
TENON_KERNEL(conv_weight_grad, float, double)
}  // namespace tenon::reference
