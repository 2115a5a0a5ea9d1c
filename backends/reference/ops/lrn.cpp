// SPDX-License-Identifier: Apache-2.0
// Local response normalisation over neighbouring channels, and the gradient.
#include <tenon/sdk/kernel.h>

#include <algorithm>
#include <cmath>

namespace tenon::reference {
namespace {

/// Iterates over pixels and their channels.
struct Pixels {
  const tenon_attributes_lrn& by;
  sdk::AxisView view;

  Pixels(const sdk::Call& call, std::uint32_t x) : by(call.attr<tenon_attributes_lrn>()), view(sdk::around_axis(call.inputs[x], 1)) {}

  /// body(pixel): the offset of its channel 0; channels are view.inner apart.
  template <class Body>
  void for_each(Body&& body) const {
    for (std::int64_t o = 0; o < view.outer && view.n > 0; ++o) {
      for (std::int64_t i = 0; i < view.inner; ++i) body(o * view.n * view.inner + i);
    }
  }
  /// Sum of f(j) over the channels j from c - before to c + after that exist.
  template <class F>
  double sum(std::int64_t c, std::int64_t before, std::int64_t after, F&& f) const {
    double total = 0;
    const std::int64_t end = after >= view.n - c ? view.n : c + after + 1;
    for (std::int64_t j = std::max<std::int64_t>(0, c - before); j < end; ++j) total += f(j);
    return total;
  }
  /// bias + alpha / size (sum of the squares in the window of channel c)
  template <class T>
  double base(const T* x, std::int64_t pixel, std::int64_t c) const {
    const double squares = sum(c, (by.size - 1) / 2, by.size / 2, [&](std::int64_t j) {
      const double value = x[pixel + j * view.inner];
      return value * value;
    });
    return by.bias + by.alpha / static_cast<double>(by.size) * squares;
  }
};

/// y = x / (bias + alpha / size (sum of x^2 over the channels c - floor((size - 1) / 2) ... c + ceil((size - 1) / 2)))^beta
///
/// Shapes  x, y (N, C, ...), dense.
/// Dtypes  f32, f64; everything up to the final rounding is f64.
/// Source  Krizhevsky, Sutskever, Hinton: ImageNet Classification with Deep Convolutional Neural Networks (2012), section 3.3.
template <class T>
void lrn(const sdk::Call& call) {
  const Pixels pixels(call, 0);
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  pixels.for_each([&](std::int64_t pixel) {
    for (std::int64_t c = 0; c < pixels.view.n; ++c) {
      const std::int64_t at = pixel + c * pixels.view.inner;
      y[at] = static_cast<T>(double{x[at]} * std::pow(pixels.base(x, pixel, c), -pixels.by.beta));
    }
  });
}

/// With d = bias + alpha / size sum x^2: dx = dy d^-beta - 2 alpha beta / size x (sum of dy x d^(-beta - 1) over the channels whose windows
/// hold this one).
template <class T>
void lrn_grad(const sdk::Call& call) {
  const Pixels pixels(call, 1);
  const tenon_attributes_lrn& by = pixels.by;
  const T* dy = call.input<T>(0);
  const T* x = call.input<T>(1);
  T* dx = call.output<T>(0);
  pixels.for_each([&](std::int64_t pixel) {
    for (std::int64_t c = 0; c < pixels.view.n; ++c) {
      const double others = pixels.sum(c, by.size / 2, (by.size - 1) / 2, [&](std::int64_t j) {
        const std::int64_t at = pixel + j * pixels.view.inner;
        return double{dy[at]} * double{x[at]} * std::pow(pixels.base(x, pixel, j), -by.beta - 1);
      });
      const std::int64_t at = pixel + c * pixels.view.inner;
      dx[at] = static_cast<T>(double{dy[at]} * std::pow(pixels.base(x, pixel, c), -by.beta) -
                              2 * by.alpha * by.beta / static_cast<double>(by.size) * double{x[at]} * others);
    }
  });
}

}  // namespace
TENON_KERNEL(lrn, float, double)
TENON_KERNEL(lrn_grad, float, double)
}  // namespace tenon::reference
