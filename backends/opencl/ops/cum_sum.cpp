// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/kernel.h>

#include "kernel/launch.h"

namespace tenon::opencl {
namespace {

/// y[i] = x[0] + ... + x[i] along the axis; exclusive without x[i], reverse from the end. Integer sums wrap.
template <class T>
void cum_sum(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_cum_sum>();
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], a.axis);
  const std::int64_t lines = outer * inner;
  if (lines == 0) return;
  Launch launch(call, sources::cum_sum, "cum_sum", types<T>());
  launch.value(lines).value(n).value(inner).value(static_cast<cl_int>(a.exclusive)).value(static_cast<cl_int>(a.reverse));
  launch.out(call, 0).in(call, 0).over(lines);
}

}  // namespace
TENON_KERNEL(cum_sum, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::opencl
