// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/element.h>

#include "kernel/map.h"

namespace tenon::opencl {
namespace {

template <class T>
void clip(const sdk::Call& call) {
  const auto [low, high] = sdk::bounds_of<T>(call.attr<tenon_attributes_clip>());
  map<1>(call, sources::arithmetic, "op_clip", types<T>(), low, high);
}

}  // namespace
TENON_MAP_KERNEL(arithmetic, abs, 1, float, double, std::int32_t, std::int64_t)
TENON_MAP_KERNEL(arithmetic, sign, 1, float, double, std::int32_t, std::int64_t)
TENON_MAP_KERNEL(arithmetic, ceil, 1, float, double)
TENON_MAP_KERNEL(arithmetic, floor, 1, float, double)
TENON_MAP_KERNEL(arithmetic, round, 1, float, double)
TENON_MAP_KERNEL(arithmetic, sqrt, 1, float, double)
TENON_MAP_KERNEL(arithmetic, rsqrt, 1, float, double)
TENON_MAP_KERNEL(arithmetic, reciprocal, 1, float, double)
TENON_KERNEL_WITH(clip, elementwise_traits, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::opencl
