// SPDX-License-Identifier: Apache-2.0
// Softmax, its logarithm, and their gradients, along one axis.
#include <tenon/sdk/kernel.h>

#include "kernel/lanes.h"

namespace tenon::opencl {
namespace {

template <class T>
void along_axis(const sdk::Call& call, const char* function) {
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const std::int64_t lines = outer * inner;
  if (lines == 0 || n == 0) return;
  const std::uint32_t width = lanes_for(n);
  Launch launch(call, sources::softmax, function, types<T>());
  launch.value(lines).value(n).value(inner).value(width).out(call, 0);
  for (std::uint32_t k = 0; k < call.input_count; ++k) launch.in(call, k);
  launch.over(lines * width);
}

}  // namespace

#define TENON_SOFTMAX(stem)           \
  namespace {                         \
  template <class T>                  \
  void stem(const sdk::Call& call) {  \
    along_axis<T>(call, "op_" #stem); \
  }                                   \
  }                                   \
  TENON_KERNEL_WITH(stem, (sdk::Traits{.in_place = true}), float, double)
TENON_SOFTMAX(softmax)
TENON_SOFTMAX(softmax_grad)
TENON_SOFTMAX(log_softmax)
TENON_SOFTMAX(log_softmax_grad)
}  // namespace tenon::opencl
