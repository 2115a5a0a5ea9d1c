// SPDX-License-Identifier: Apache-2.0
// Convolution and its gradients by image and filters: products of matrices, or the sums of ops/conv.cl.
#include "conv/input_grad.h"
#include "kernel/lanes.h"

namespace tenon::opencl {
namespace {

ConvTerms terms_of_conv(const sdk::Call& call) {
  return {call, call.inputs[0], call.inputs[1], call.outputs[0]};
}
ConvTerms terms_of_weight_grad(const sdk::Call& call) {
  return {call, call.inputs[1], call.outputs[0], call.inputs[0]};
}

template <ConvTerms (*terms_of)(const sdk::Call&)>
std::size_t scratch(const sdk::Call& call) {
  return column_bytes(terms_of(call), sdk::size_of(call.inputs[0].dtype));
}

template <class T>
void conv(const sdk::Call& call) {
  const ConvTerms terms = terms_of_conv(call);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  if (by_products(terms)) return conv_by_products<T>(call, terms);
  Launch launch(call, sources::conv, "conv", types<T>());
  launch.value(terms.windows).value(terms.groups).value(count).out(call, 0).in(call, 0).in(call, 1).in(call, 2).over(count);
}

template <class T>
void conv_input_grad(const sdk::Call& call) {
  input_grad<T>(call);
}

template <class T>
void conv_weight_grad(const sdk::Call& call) {
  const ConvTerms terms = terms_of_weight_grad(call);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  if (by_products(terms)) return weight_grad_by_products<T>(call, terms);
  const std::uint32_t width = lanes_for(terms.batch * terms.windows.windows());
  Launch launch(call, sources::conv, "conv_weight_grad", types<T>());
  launch.value(terms.windows).value(terms.groups).value(count).value(terms.batch).value(width);
  launch.out(call, 0).in(call, 0).in(call, 1).over(count * width);
}

}  // namespace
TENON_KERNEL_WITH(conv, (sdk::Traits{.scratch = scratch<terms_of_conv>, .refuse = refuse_volumes}), float, double)
TENON_KERNEL_WITH(conv_input_grad, (sdk::Traits{.scratch = input_grad_scratch, .refuse = refuse_volumes}), float, double)
TENON_KERNEL_WITH(conv_weight_grad, (sdk::Traits{.scratch = scratch<terms_of_weight_grad>, .refuse = refuse_volumes}), float, double)
}  // namespace tenon::opencl
