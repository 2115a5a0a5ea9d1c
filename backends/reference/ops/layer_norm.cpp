// SPDX-License-Identifier: Apache-2.0
// Normalisation of each line by its own mean and variance, and the gradient.
#include <tenon/sdk/kernel.h>

#include <cmath>

#include "statistics.h"

namespace tenon::reference {
namespace {

/// y = (x - mean) inverse_std scale + bias, with the mean and inverse_std = 1 / sqrt(var + epsilon) of the line.
///
/// Shapes  x, y dense, a line being the dimensions from `axis` on; y may be x. scale and bias (line), or absent.
/// Dtypes  f32, f64; everything up to the final rounding is f64.
/// Source  Ba, Kiros, Hinton: Layer Normalization (2016).
template <class T>
void layer_norm(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_layer_norm>();
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], attributes.axis);
  const std::int64_t n = view.n * view.inner;
  const T* x = call.input<T>(0);
  const T* scale = call.has_input(1) ? call.input<T>(1) : nullptr;
  const T* bias = call.has_input(2) ? call.input<T>(2) : nullptr;
  T* y = call.output<T>(0);
  for (std::int64_t line = 0; line < view.outer; ++line, x += n, y += n) {
    const Statistics of(n, [&](std::int64_t i) { return double{x[i]}; });
    const double inverse_std = of.inverse_std(attributes.epsilon);
    if (call.has_output(1)) call.output<T>(1)[line] = static_cast<T>(of.mean);
    if (call.has_output(2)) call.output<T>(2)[line] = static_cast<T>(inverse_std);
    for (std::int64_t i = 0; i < n; ++i) {
      double value = (double{x[i]} - of.mean) * inverse_std;
      if (scale != nullptr) value *= double{scale[i]};
      if (bias != nullptr) value += double{bias[i]};
      y[i] = static_cast<T>(value);
    }
  }
}

/// With x' = (x - mean) inverse_std and g = dy scale: dx = inverse_std (g - mean(g) - x' mean(g x')), the means over the line;
/// dscale = sum(dy x'), dbias = sum(dy) over the lines.
template <class T>
void layer_norm_grad(const sdk::Call& call) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[1], call.attr<tenon_attributes_layer_norm>().axis);
  const std::int64_t n = view.n * view.inner;
  const T* const dy = call.input<T>(0);
  const T* const x = call.input<T>(1);
  const T* const scale = call.has_input(2) ? call.input<T>(2) : nullptr;
  const T* const mean = call.input<T>(3);
  const T* const inverse_std = call.input<T>(4);
  T* const dx = call.output<T>(0);
  const auto normal = [&](std::int64_t line, std::int64_t i) {
    return (double{x[line * n + i]} - double{mean[line]}) * double{inverse_std[line]};
  };
  const auto weighted = [&](std::int64_t line, std::int64_t i) {
    return double{dy[line * n + i]} * (scale == nullptr ? 1 : double{scale[i]});
  };
  for (std::int64_t line = 0; line < view.outer; ++line) {
    double sum = 0, product = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += weighted(line, i);
      product += weighted(line, i) * normal(line, i);
    }
    sum /= static_cast<double>(n);
    product /= static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i) {
      dx[line * n + i] = static_cast<T>(double{inverse_std[line]} * (weighted(line, i) - sum - normal(line, i) * product));
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    double dscale = 0, dbias = 0;
    for (std::int64_t line = 0; line < view.outer; ++line) {
      dscale += double{dy[line * n + i]} * normal(line, i);
      dbias += double{dy[line * n + i]};
    }
    if (call.has_output(1)) call.output<T>(1)[i] = static_cast<T>(dscale);
    if (call.has_output(2)) call.output<T>(2)[i] = static_cast<T>(dbias);
  }
}

}  // namespace
TENON_KERNEL_WITH(layer_norm, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL(layer_norm_grad, float, double)
}  // namespace tenon::reference
