// SPDX-License-Identifier: Apache-2.0
// The classification loss on raw scores, and its gradient. Errors: a label that is neither a class nor ignored, when the work is waited
// for.
#include <tenon/sdk/kernel.h>

#include "kernel/lanes.h"

namespace tenon::opencl {
namespace {

std::string label_type(const sdk::Operand& labels) {
  return labels.dtype == TENON_DTYPE_I64 ? " -DLABEL=long" : " -DLABEL=int";
}

/// Sets the parameters of TARGETS.
Launch& add_targets(Launch& launch, const sdk::Call& call, std::uint32_t labels, std::int64_t classes, tenon_op op) {
  const auto& a = call.attr<tenon_attributes_cross_entropy>();
  launch.in(call, labels).in(call, labels + 1).value(classes).value(static_cast<cl_int>(a.has_ignore_index)).value(a.ignore_index);
  return launch.fault(call, op);
}

template <class T>
void softmax_cross_entropy(const sdk::Call& call) {
  const auto [outer, classes, inner] = sdk::around_axis(call.inputs[0], 1);
  const std::int64_t positions = outer * inner;
  const std::uint32_t reduction = call.attr<tenon_attributes_cross_entropy>().reduction;
  const bool reduces = reduction != TENON_REDUCTION_NONE && call.has_output(0);
  const std::string options = types<T>() + label_type(call.inputs[1]);
  if (positions > 0) {
    const std::uint32_t width = lanes_for(classes);
    Launch launch(call, sources::softmax_cross_entropy, "loss_of_positions", options);
    launch.value(positions).value(inner).value(width).out(call, 1);
    launch.address(!reduces && call.has_output(0) ? call.outputs[0].data : nullptr).address(reduces ? call.scratch : nullptr).in(call, 0);
    add_targets(launch, call, 1, classes, TENON_OP_SoftmaxCrossEntropyLoss).over(positions * width);
  }
  if (!reduces) return;
  Launch(call, sources::softmax_cross_entropy, "loss_of_batch", options)
      .value(positions)
      .value(static_cast<cl_int>(reduction == TENON_REDUCTION_MEAN))
      .out(call, 0)
      .address(positions == 0 ? nullptr : call.scratch)
      .over(1);
}

template <class T>
void softmax_cross_entropy_grad(const sdk::Call& call) {
  const auto [outer, classes, inner] = sdk::around_axis(call.inputs[1], 1);
  const std::uint32_t reduction = call.attr<tenon_attributes_cross_entropy>().reduction;
  const std::int64_t count = call.outputs[0].count;
  const std::string options = types<T>() + label_type(call.inputs[2]);
  const bool mean = reduction == TENON_REDUCTION_MEAN;
  if (count == 0) return;
  if (mean) {
    Launch launch(call, sources::softmax_cross_entropy, "total_weight", options);
    launch.value(outer * inner).address(call.scratch);
    add_targets(launch, call, 2, classes, TENON_OP_SoftmaxCrossEntropyLossGrad).over(1);
  }
  Launch launch(call, sources::softmax_cross_entropy, "loss_grad", options);
  launch.value(count).value(inner).value(static_cast<cl_int>(reduction != TENON_REDUCTION_NONE)).out(call, 0).in(call, 0).in(call, 1);
  launch.address(mean ? call.scratch : nullptr);
  add_targets(launch, call, 2, classes, TENON_OP_SoftmaxCrossEntropyLossGrad).over(count);
}

/// Two values for each position.
std::size_t scratch_of_loss(const sdk::Call& call) {
  return 2 * static_cast<std::size_t>(call.inputs[1].count * sdk::size_of(call.inputs[0].dtype));
}
std::size_t scratch_of_gradient(const sdk::Call&) {
  return sizeof(double);
}

}  // namespace
TENON_KERNEL_WITH(softmax_cross_entropy, (sdk::Traits{.scratch = scratch_of_loss}), float, double)
TENON_KERNEL_WITH(softmax_cross_entropy_grad, (sdk::Traits{.in_place = true, .scratch = scratch_of_gradient}), float, double)
}  // namespace tenon::opencl
