// SPDX-License-Identifier: Apache-2.0
// epilogue.cuh - the epilogue of a call (sdk::Epilogue) at one element.
#pragma once

#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"

namespace tenon::cuda {

/// activation(x + bias + residual), in the compute type of x.
template <class T>
struct ElementEpilogue {
  const T* residual = nullptr;  ///< NULL: none
  const T* bias = nullptr;      ///< (n), n the last dimension of the result; NULL: none
  std::int64_t n = 1;
  sdk::Activation activation = {};

  template <int V>
  __device__ Pack<T, V> read(std::int64_t at) const {
    Pack<T, V> pack{};
    if (residual != nullptr) pack = pack_at<V>(residual + at);
    return pack;
  }
  /// `at` is the index of the element.
  __device__ Wide<T> operator()(Wide<T> x, T addend, std::int64_t at) const { return activated(activation, sum(x, addend, at)); }
  /// The same before the activation.
  __device__ Wide<T> sum(Wide<T> x, T addend, std::int64_t at) const {
    if (bias != nullptr) x += widen(bias[at % n]);
    if (residual != nullptr) x += widen(addend);
    return x;
  }
};

template <class T>
ElementEpilogue<T> element_epilogue(const sdk::Call& call) {
  const sdk::Epilogue& epilogue = call.epilogue;
  ElementEpilogue<T> by;
  if (epilogue.residual != nullptr) by.residual = epilogue.residual->as<const T>();
  if (epilogue.bias != nullptr) {
    by.bias = epilogue.bias->as<const T>();
    by.n = epilogue.bias->count;
  }
  by.activation = epilogue.activation;
  return by;
}

}  // namespace tenon::cuda
