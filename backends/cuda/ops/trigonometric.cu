// SPDX-License-Identifier: Apache-2.0
// Sine and cosine.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
namespace {

template <class T>
void sin(const sdk::Call& call) {
  map<T, T>(call, functions::Sin{});
}

template <class T>
void cos(const sdk::Call& call) {
  map<T, T>(call, functions::Cos{});
}

}  // namespace
TENON_KERNEL_WITH(sin, elementwise_traits, float, double)
TENON_KERNEL_WITH(cos, elementwise_traits, float, double)
}  // namespace tenon::cuda
