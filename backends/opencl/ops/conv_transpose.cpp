// SPDX-License-Identifier: Apache-2.0
// Transposed convolution: the gradient of a convolution by its image, with a bias.
#include "kernel/conv.h"

namespace tenon::opencl {
namespace {

/// x (N, C, d...) takes the place of dy, w (C, O / groups, k...) has a filter for each of its channels.
template <class T>
void conv_transpose(const sdk::Call& call) {
  const ConvTerms terms(call.attr<tenon_attributes_conv>(), call.outputs[0], call.inputs[1], call.inputs[0]);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Launch launch(call, sources::conv, "conv_input_grad", types<T>());
  launch.value(terms.windows).value(terms.groups).value(count).out(call, 0).in(call, 0).in(call, 1).in(call, 2).over(count);
}

}  // namespace
TENON_KERNEL_WITH(conv_transpose, (sdk::Traits{.refuse = refuse_volumes}), float, double)
}  // namespace tenon::opencl
