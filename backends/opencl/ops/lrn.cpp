// SPDX-License-Identifier: Apache-2.0
// Local response normalisation over neighbouring channels, and the gradient. The formulas are in ops/lrn.cl.
#include <tenon/sdk/kernel.h>

#include "kernel/launch.h"

namespace tenon::opencl {
namespace {

template <class T>
void normalise(const sdk::Call& call, const char* function) {
  const auto& a = call.attr<tenon_attributes_lrn>();
  const auto [outer, channels, inner] = sdk::around_axis(call.inputs[0], 1);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Launch launch(call, sources::lrn, function, types<T>());
  launch.value(count).value(channels).value(inner).value(a.size).out(call, 0);
  for (std::uint32_t k = 0; k < call.input_count; ++k) launch.in(call, k);
  launch.value(static_cast<T>(a.alpha / static_cast<double>(a.size)))
      .value(static_cast<T>(a.beta))
      .value(static_cast<T>(a.bias))
      .over(count);
}

template <class T>
void lrn(const sdk::Call& call) {
  normalise<T>(call, "lrn");
}

template <class T>
void lrn_grad(const sdk::Call& call) {
  normalise<T>(call, "lrn_grad");
}

}  // namespace
TENON_KERNEL(lrn, float, double)
TENON_KERNEL(lrn_grad, float, double)
}  // namespace tenon::opencl
