// SPDX-License-Identifier: Apache-2.0
#include "kernel/map.h"

namespace tenon::opencl {
namespace {

template <class T>
void div(const sdk::Call& call) {
  if constexpr (std::is_integral_v<T>) {
    const Layout layout = layout_of_inputs<2>(call);
    if (layout.count == 0) return;
    Launch(call, sources::binary, "op_div", types<T>())
        .value(layout)
        .out(call, 0)
        .in(call, 0)
        .in(call, 1)
        .fault(call, TENON_OP_Div)
        .over(layout.count);
  } else {
    map<2>(call, sources::binary, "op_div", types<T>());
  }
}

}  // namespace
TENON_MAP_KERNEL(binary, add, 2, float, double, std::int32_t, std::int64_t)
TENON_MAP_KERNEL(binary, sub, 2, float, double, std::int32_t, std::int64_t)
TENON_MAP_KERNEL(binary, mul, 2, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(div, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_MAP_KERNEL(binary, pow, 2, float, double)
TENON_MAP_KERNEL(binary, maximum, 2, float, double, std::int32_t, std::int64_t)
TENON_MAP_KERNEL(binary, minimum, 2, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::opencl
