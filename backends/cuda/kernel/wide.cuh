// SPDX-License-Identifier: Apache-2.0
// wide.cuh - the compute type of elements: f64 for f64, f32 for the other floating types; for integers the unsigned type of their size, so
// that sums wrap.
#pragma once

#include <type_traits>

#include "kernel/functions.cuh"
#include "kernel/half.cuh"
#include "kernel/pack.cuh"

namespace tenon::cuda {

template <class T>
using Wide = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                         std::type_identity<std::conditional_t<std::is_same_v<T, double>, double, float>>>::type;

template <class T>
__device__ Wide<T> widen(T x) {
  if constexpr (is_narrow<T>) {
    return to_float(x);
  } else {
    return static_cast<Wide<T>>(x);
  }
}

template <class T>
__device__ T narrow(Wide<T> x) {
  if constexpr (is_narrow<T>) {
    return from_float<T>(x);
  } else {
    return static_cast<T>(x);
  }
}
template <class T, int V>
__device__ Pack<T, V> narrow(const Wide<T> (&x)[V]) {
  Pack<T, V> pack;
#pragma unroll
  for (int v = 0; v < V; ++v) pack.at[v] = narrow<T>(x[v]);
  return pack;
}

template <class W>
__device__ W activated(sdk::Activation activation, W x) {
  switch (activation.kind) {
    case sdk::Activation::relu:
      return functions::Relu{}(x);
    case sdk::Activation::sigmoid:
      return functions::Sigmoid{}(x);
    case sdk::Activation::tanh:
      return functions::Tanh{}(x);
    default:
      return x;
  }
}

}  // namespace tenon::cuda
