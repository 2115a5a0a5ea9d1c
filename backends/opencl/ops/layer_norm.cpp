// SPDX-License-Identifier: Apache-2.0
// Normalisation of each line by its own mean and variance, and the gradient. The formulas are in kernel/norm.cl.
#include "kernel/norm.h"

namespace tenon::opencl {
namespace {

template <class T>
void layer_norm(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_layer_norm>();
  LineLaunch(call, "layer_norm", types<T>(), lines_of(call.inputs[0], a.axis))
      .out(call, {0, 1, 2})
      .in(call, {0, 1, 2})
      .run(static_cast<T>(a.epsilon));
}

template <class T>
void layer_norm_grad(const sdk::Call& call) {
  const Lines lines = lines_of(call.inputs[1], call.attr<tenon_attributes_layer_norm>().axis);
  LineLaunch(call, "line_norm_grad", types<T>(), lines).out(call, {0}).in(call, {0, 1, 2, 3, 4}).run();
  if (!call.has_output(1) && !call.has_output(2)) return;
  LineLaunch(call, "line_norm_parameters", types<T>(), across(lines)).out(call, {1, 2}).in(call, {0, 1, 3, 4}).run();
}

}  // namespace
TENON_KERNEL_WITH(layer_norm, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL(layer_norm_grad, float, double)
}  // namespace tenon::opencl
