// SPDX-License-Identifier: Apache-2.0
// Abs, Sign, rounding, roots, reciprocal, Clip.
#include <tenon/sdk/element.h>

#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
namespace {

template <class T>
void clip(const sdk::Call& call) {
  const auto [low, high] = sdk::bounds_of<T>(call.attr<tenon_attributes_clip>());
  map<T, T>(call, functions::Clip<T>{low, high});
}

}  // namespace
TENON_UNARY_KERNEL(abs, functions::Abs{}, float, double, std::int32_t, std::int64_t)
TENON_UNARY_KERNEL(sign, functions::Sign{}, float, double, std::int32_t, std::int64_t)
TENON_UNARY_KERNEL(ceil, functions::Ceil{}, float, double)
TENON_UNARY_KERNEL(floor, functions::Floor{}, float, double)
TENON_UNARY_KERNEL(round, functions::Round{}, float, double)
TENON_UNARY_KERNEL(sqrt, functions::Sqrt{}, float, double)
TENON_UNARY_KERNEL(rsqrt, functions::Rsqrt{}, float, double)
TENON_UNARY_KERNEL(reciprocal, functions::Reciprocal{}, float, double)
TENON_KERNEL_WITH(clip, elementwise_traits, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::cuda
