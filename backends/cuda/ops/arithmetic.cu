// SPDX-License-Identifier: Apache-2.0
// Abs, Sign, rounding, roots, reciprocal, Clip.
#include <tenon/sdk/element.h>

#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
namespace {

template <class T>
void abs(const sdk::Call& call) {
  map<T, T>(call, functions::Abs{});
}

template <class T>
void sign(const sdk::Call& call) {
  map<T, T>(call, functions::Sign{});
}

template <class T>
void ceil(const sdk::Call& call) {
  map<T, T>(call, functions::Ceil{});
}

template <class T>
void floor(const sdk::Call& call) {
  map<T, T>(call, functions::Floor{});
}

template <class T>
void round(const sdk::Call& call) {
  map<T, T>(call, functions::Round{});
}

template <class T>
void sqrt(const sdk::Call& call) {
  map<T, T>(call, functions::Sqrt{});
}

template <class T>
void rsqrt(const sdk::Call& call) {
  map<T, T>(call, functions::Rsqrt{});
}

template <class T>
void reciprocal(const sdk::Call& call) {
  map<T, T>(call, functions::Reciprocal{});
}

template <class T>
void clip(const sdk::Call& call) {
  const auto [low, high] = sdk::bounds_of<T>(call.attr<tenon_attributes_clip>());
  map<T, T>(call, functions::Clip<T>{low, high});
}

}  // namespace
TENON_KERNEL_WITH(abs, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(sign, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(ceil, elementwise_traits, float, double)
TENON_KERNEL_WITH(floor, elementwise_traits, float, double)
TENON_KERNEL_WITH(round, elementwise_traits, float, double)
TENON_KERNEL_WITH(sqrt, elementwise_traits, float, double)
TENON_KERNEL_WITH(rsqrt, elementwise_traits, float, double)
TENON_KERNEL_WITH(reciprocal, elementwise_traits, float, double)
TENON_KERNEL_WITH(clip, elementwise_traits, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::cuda
