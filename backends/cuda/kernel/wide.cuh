// SPDX-License-Identifier: Apache-2.0
// wide.cuh - the compute type of elements: f64 for f64, else f32.
#pragma once

#include <type_traits>

#include "kernel/functions.cuh"
#include "kernel/half.cuh"

namespace tenon::cuda {

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
__device__ Wide<T> widen(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return to_float(x);
  }
}

template <class T>
__device__ T narrow(Wide<T> x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return from_float<T>(x);
  }
}

template <class W>
__device__ W activated(sdk::Activation activation, W x) {
  switch (activation) {
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
