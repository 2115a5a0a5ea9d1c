// SPDX-License-Identifier: Apache-2.0
// Convolution and its gradients by image and filters; the sums are in ops/conv.cl.
#include "kernel/conv.h"
#include "kernel/lanes.h"

namespace tenon::opencl {
namespace {

template <class T>
void conv(const sdk::Call& call) {
  const ConvTerms terms(call.attr<tenon_attributes_conv>(), call.inputs[0], call.inputs[1], call.outputs[0]);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Launch launch(call, sources::conv, "conv", types<T>());
  launch.value(terms.windows).value(terms.groups).value(count).out(call, 0).in(call, 0).in(call, 1).in(call, 2).over(count);
}

template <class T>
void conv_input_grad(const sdk::Call& call) {
  const ConvTerms terms(call.attr<tenon_attributes_conv>(), call.outputs[0], call.inputs[1], call.inputs[0]);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Launch launch(call, sources::conv, "conv_input_grad", types<T>());
  launch.value(terms.windows).value(terms.groups).value(count).out(call, 0).in(call, 0).in(call, 1).address(nullptr).over(count);
}

template <class T>
void conv_weight_grad(const sdk::Call& call) {
  const ConvTerms terms(call.attr<tenon_attributes_conv>(), call.inputs[1], call.outputs[0], call.inputs[0]);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  const std::uint32_t width = lanes_for(terms.batch * terms.windows.windows());
  Launch launch(call, sources::conv, "conv_weight_grad", types<T>());
  launch.value(terms.windows).value(terms.groups).value(count).value(terms.batch).value(width);
  launch.out(call, 0).in(call, 0).in(call, 1).over(count * width);
}

constexpr sdk::Traits traits{.refuse = refuse_volumes};

}  // namespace
TENON_KERNEL_WITH(conv, traits, float, double)
TENON_KERNEL_WITH(conv_input_grad, traits, float, double)
TENON_KERNEL_WITH(conv_weight_grad, traits, float, double)
}  // namespace tenon::opencl
