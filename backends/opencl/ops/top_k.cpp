// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/kernel.h>

#include "kernel/launch.h"

namespace tenon::opencl {
namespace {

/// The k best of each line along the axis in order, equal ones by their index.
template <class T>
void top_k(const sdk::Call& call) {
  const auto& a = call.attr<tenon_attributes_top_k>();
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], a.axis);
  const std::int64_t lines = outer * inner;
  if (lines == 0 || a.k == 0) return;
  Launch launch(call, sources::top_k, "top_k", types<T>());
  launch.value(lines).value(n).value(inner).value(a.k).value(static_cast<cl_int>(a.largest));
  launch.out(call, 0).out(call, 1).in(call, 0).over(lines);
}

}  // namespace
TENON_KERNEL(top_k, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::opencl
