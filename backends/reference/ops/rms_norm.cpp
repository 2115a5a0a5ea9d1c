// SPDX-License-Identifier: Apache-2.0
// Division of each line by the root of its mean square, and the gradient.
#include <tenon/sdk/kernel.h>

#include <cmath>

namespace tenon::reference {
namespace {

/// y = x inverse_rms scale, inverse_rms = 1 / sqrt(mean(x^2) + epsilon), the mean over the line.
///
/// Shapes  x, y dense, a line being the dimensions from `axis` on; y may be x. scale (line), or absent.
/// Dtypes  f32, f64; everything up to the final rounding is f64.
/// Source  Zhang, Sennrich: Root Mean Square Layer Normalization (2019).
template <class T>
void rms_norm(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_layer_norm>();
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], attributes.axis);
  const std::int64_t n = view.n * view.inner;
  const T* x = call.input<T>(0);
  const T* scale = call.has_input(1) ? call.input<T>(1) : nullptr;
  T* y = call.output<T>(0);
  for (std::int64_t line = 0; line < view.outer; ++line, x += n, y += n) {
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) squares += double{x[i]} * double{x[i]};
    const double inverse_rms = 1 / std::sqrt(squares / static_cast<double>(n) + attributes.epsilon);
    if (call.has_output(1)) call.output<T>(1)[line] = static_cast<T>(inverse_rms);
    for (std::int64_t i = 0; i < n; ++i) {
      const double value = double{x[i]} * inverse_rms;
      y[i] = static_cast<T>(scale == nullptr ? value : value * double{scale[i]});
    }
  }
}

/// With x' = x inverse_rms and g = dy scale: dx = inverse_rms (g - x' mean(g x')), the mean over the line; dscale = sum(dy x') over the
/// lines.
template <class T>
void rms_norm_grad(const sdk::Call& call) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[1], call.attr<tenon_attributes_layer_norm>().axis);
  const std::int64_t n = view.n * view.inner;
  const T* const dy = call.input<T>(0);
  const T* const x = call.input<T>(1);
  const T* const scale = call.has_input(2) ? call.input<T>(2) : nullptr;
  const T* const inverse_rms = call.input<T>(3);
  T* const dx = call.output<T>(0);
  const auto normal = [&](std::int64_t line, std::int64_t i) { return double{x[line * n + i]} * double{inverse_rms[line]}; };
  const auto weighted = [&](std::int64_t line, std::int64_t i) {
    return double{dy[line * n + i]} * (scale == nullptr ? 1 : double{scale[i]});
  };
  for (std::int64_t line = 0; line < view.outer; ++line) {
    double product = 0;
    for (std::int64_t i = 0; i < n; ++i) product += weighted(line, i) * normal(line, i);
    product /= static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i) {
      dx[line * n + i] = static_cast<T>(double{inverse_rms[line]} * (weighted(line, i) - normal(line, i) * product));
    }
  }
  if (!call.has_output(1)) return;
  for (std::int64_t i = 0; i < n; ++i) {
    double dscale = 0;
    for (std::int64_t line = 0; line < view.outer; ++line) dscale += double{dy[line * n + i]} * normal(line, i);
    call.output<T>(1)[i] = static_cast<T>(dscale);
  }
}

}  // namespace
TENON_KERNEL_WITH(rms_norm, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL(rms_norm_grad, float, double)
}  // namespace tenon::reference
