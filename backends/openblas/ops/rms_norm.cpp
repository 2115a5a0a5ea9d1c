// SPDX-License-Identifier: Apache-2.0
// ops/rms_norm.cpp - vectorised root-mean-square normalisation and its gradient.
#include <tenon/sdk/kernel.h>

#include "norm/line_norm.h"

namespace tenon::openblas {
namespace {

/// y = x inverse_rms scale
template <class T>
void rms_norm(const sdk::Call& call) {
  normalise_lines<T>(call, Centre::zero, call.input<T>(0), call.has_input(1) ? call.input<T>(1) : nullptr, nullptr, call.output<T>(0),
                     nullptr, call.has_output(1) ? call.output<T>(1) : nullptr);
}

/// dx = inverse_rms (g - x' mean(g x')), dscale = sum(dy x')
template <class T>
void rms_norm_grad(const sdk::Call& call) {
  line_gradient<T>(call, Centre::zero, call.input<T>(0), call.input<T>(1), call.has_input(2) ? call.input<T>(2) : nullptr, nullptr,
                   call.input<T>(3), call.output<T>(0), call.has_output(1) ? call.output<T>(1) : nullptr, nullptr);
}

std::size_t scratch(const sdk::Call& call) {
  return line_gradient_scratch(call, 1);
}

}  // namespace

TENON_KERNEL_WITH(rms_norm, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(rms_norm_grad, (sdk::Traits{.scratch = scratch}), float, double)

}  // namespace tenon::openblas
