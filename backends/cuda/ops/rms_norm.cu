// SPDX-License-Identifier: Apache-2.0
// Division of each line by the root of its mean square, and the gradient.
#include "norm/line_norm.cuh"

namespace tenon::cuda {
namespace {

/// y = x inverse_rms scale, inverse_rms = 1 / sqrt(mean(x^2) + epsilon), the mean over the line.
///
/// Shapes  x, y dense, a line being the dimensions from `axis` on; y may be x. scale (line), or absent.
/// Source  Zhang, Sennrich: Root Mean Square Layer Normalization (2019).
template <class T>
void rms_norm(const sdk::Call& call) {
  const Channels lines = lines_of(call, 0);
  normalise_lines<T, false>(call,
                            {lines.inner, epsilon_of<T>(call), call.input<T>(0), input_or_null<T>(call, 1), nullptr, call.output<T>(0),
                             nullptr, output_or_null<T>(call, 1)},
                            lines.count);
}

/// With x' = x inverse_rms and g = dy scale: dx = inverse_rms (g - x' mean(g x')), the mean over the line; dscale = sum(dy x') over the
/// lines.
template <class T>
void rms_norm_grad(const sdk::Call& call) {
  const Channels lines = lines_of(call, 1);
  line_gradients<T, false>(call,
                           {lines.inner, call.input<T>(0), call.input<T>(1), input_or_null<T>(call, 2), nullptr, call.input<T>(3),
                            call.output<T>(0), output_or_null<T>(call, 1), nullptr, element_epilogue<T>(call)},
                           lines.count);
}

}  // namespace
TENON_KERNEL_WITH(rms_norm, line_norm_traits, sdk::Half, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(rms_norm_grad, line_norm_grad_traits, sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
