// SPDX-License-Identifier: Apache-2.0
// Normalisation of each line by its root mean square, and the gradient. The formulas are in kernel/norm.cl.
#include "kernel/norm.h"

namespace tenon::opencl {
namespace {

template <class T>
void rms_norm(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_layer_norm>();
  LineLaunch(call, "rms_norm", types<T>(), lines_of(call.inputs[0], a.axis))
      .out(call, {0, 1})
      .in(call, {0, 1})
      .run(static_cast<T>(a.epsilon));
}

template <class T>
void rms_norm_grad(const sdk::Call& call) {
  constexpr std::uint32_t absent = ~0u;  // no mean, no dbias
  const Lines lines = lines_of(call.inputs[1], call.attr<tenon_attributes_layer_norm>().axis);
  LineLaunch(call, "line_norm_grad", types<T>(), lines).out(call, {0}).in(call, {0, 1, 2, absent, 3}).run();
  if (!call.has_output(1)) return;
  LineLaunch(call, "line_norm_parameters", types<T>(), across(lines)).out(call, {1, absent}).in(call, {0, 1, absent, 3}).run();
}

}  // namespace
TENON_KERNEL_WITH(rms_norm, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL(rms_norm_grad, float, double)
}  // namespace tenon::opencl
