// SPDX-License-Identifier: Apache-2.0
// Normalisation of each channel: with given statistics, with those of the batch, and the gradient of the latter. The formulas are in
// kernel/norm.cl.
#include "kernel/norm.h"

namespace tenon::opencl {
namespace {

Lines channels_of(const sdk::Call& call, std::uint32_t x) {
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[x], call.attr<tenon_attributes_batch_norm>().axis);
  return {n, outer * inner, inner};
}

template <class T>
void batch_norm(const sdk::Call& call) {
  const Lines channels = channels_of(call, 0);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Launch launch(call, sources::norm, "batch_norm", types<T>());
  launch.value(count).value(channels.count).value(channels.inner).out(call, 0);
  for (std::uint32_t k = 0; k < 5; ++k) launch.in(call, k);
  launch.value(static_cast<T>(call.attr<tenon_attributes_batch_norm>().epsilon)).over(count);
}

template <class T>
void batch_norm_train(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_batch_norm>();
  LineLaunch(call, "batch_norm_train", types<T>(), channels_of(call, 0))
      .out(call, {0, 1, 2, 3, 4})
      .in(call, {0, 1, 2, 3, 4})
      .run(static_cast<T>(a.epsilon), static_cast<T>(a.momentum), static_cast<T>(1 - a.momentum), static_cast<cl_int>(a.biased));
}

template <class T>
void batch_norm_train_grad(const sdk::Call& call) {
  LineLaunch(call, "batch_norm_train_grad", types<T>(), channels_of(call, 1)).out(call, {0, 1, 2}).in(call, {0, 1, 2, 3, 4}).run();
}

}  // namespace
TENON_KERNEL_WITH(batch_norm, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL_WITH(batch_norm_train, (sdk::Traits{.in_place = true}), float, double)
TENON_KERNEL(batch_norm_train_grad, float, double)
}  // namespace tenon::opencl
