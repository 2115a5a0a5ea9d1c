// SPDX-License-Identifier: Apache-2.0
// ops/layer_norm.cpp - vectorised layer normalisation and its gradient.
#include <tenon/sdk/kernel.h>

#include "norm/line_norm.h"

namespace tenon::openblas {
namespace {

template <class T>
const T* input(const sdk::Call& call, std::uint32_t i) {
  return call.has_input(i) ? call.input<T>(i) : nullptr;
}
template <class T>
T* output(const sdk::Call& call, std::uint32_t i) {
  return call.has_output(i) ? call.output<T>(i) : nullptr;
}

/// y = (x - mean) inverse_std scale + bias
template <class T>
void layer_norm(const sdk::Call& call) {
  normalise_lines<T>(call, Centre::mean, call.input<T>(0), input<T>(call, 1), input<T>(call, 2), call.output<T>(0), output<T>(call, 1),
                     output<T>(call, 2));
}

/// dx = inverse_std (g - mean(g) - x' mean(g x')), dscale = sum(dy x'), dbias = sum(dy)
template <class T>
void layer_norm_grad(const sdk::Call& call) {
  line_gradient<T>(call, Centre::mean, call.input<T>(0), call.input<T>(1), input<T>(call, 2), call.input<T>(3), call.input<T>(4),
                   call.output<T>(0), output<T>(call, 1), output<T>(call, 2));
}

std::size_t scratch(const sdk::Call& call) {
  return line_gradient_scratch(call, 1);
}

}  // namespace

TENON_KERNEL_WITH(layer_norm, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(layer_norm_grad, (sdk::Traits{.scratch = scratch}), float, double)

}  // namespace tenon::openblas
