// SPDX-License-Identifier: Apache-2.0
// Normalisation of each line by its own mean and variance, and the gradient.
#include "norm/line_norm.cuh"

namespace tenon::cuda {
namespace {

/// y = (x - mean) inverse_std scale + bias, with the mean and inverse_std = 1 / sqrt(var + epsilon) of the line.
///
/// Shapes  x, y dense, a line being the dimensions from `axis` on; y may be x. scale and bias (line), or absent.
/// Source  Ba, Kiros, Hinton: Layer Normalization (2016).
template <class T>
void layer_norm(const sdk::Call& call) {
  const Channels lines = lines_of(call, 0);
  normalise_lines<T, true>(call,
                           {lines.inner, epsilon_of<T>(call), call.input<T>(0), input_or_null<T>(call, 1), input_or_null<T>(call, 2),
                            call.output<T>(0), output_or_null<T>(call, 1), output_or_null<T>(call, 2)},
                           lines.count);
}

/// With x' = (x - mean) inverse_std and g = dy scale: dx = inverse_std (g - mean(g) - x' mean(g x')), the means over the line;
/// dscale = sum(dy x'), dbias = sum(dy) over the lines.
template <class T>
void layer_norm_grad(const sdk::Call& call) {
  const Channels lines = lines_of(call, 1);
  line_gradients<T, true>(call,
                          {lines.inner, call.input<T>(0), call.input<T>(1), input_or_null<T>(call, 2), call.input<T>(3), call.input<T>(4),
                           call.output<T>(0), output_or_null<T>(call, 1), output_or_null<T>(call, 2), element_epilogue<T>(call)},
                          lines.count);
}

}  // namespace
TENON_KERNEL_WITH(layer_norm, line_norm_traits, sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(layer_norm_grad, line_norm_grad_traits, sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
