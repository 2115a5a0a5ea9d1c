// SPDX-License-Identifier: Apache-2.0
// Elementwise activations (functions.cuh).
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
namespace {

template <class T>
void leaky_relu(const sdk::Call& call) {
  map<T, T>(call, functions::LeakyRelu<T>{static_cast<T>(call.attr<tenon_attributes_alpha>().alpha)});
}

template <class T>
void elu(const sdk::Call& call) {
  map<T, T>(call, functions::Elu<T>{static_cast<T>(call.attr<tenon_attributes_alpha>().alpha)});
}

template <class T>
void softplus(const sdk::Call& call) {
  map<T, T>(call, functions::Softplus{});
}

template <class T>
void mish(const sdk::Call& call) {
  map<T, T>(call, functions::Mish{});
}

template <class T>
void gelu(const sdk::Call& call) {
  if (call.attr<tenon_attributes_gelu>().approximate_tanh == 0) {
    map<T, T>(call, functions::Gelu{});
  } else {
    map<T, T>(call, functions::GeluTanh{});
  }
}

template <class T>
void silu(const sdk::Call& call) {
  map<T, T>(call, functions::Silu{});
}

}  // namespace
TENON_KERNEL_WITH(leaky_relu, elementwise_traits, float, double)
TENON_KERNEL_WITH(elu, elementwise_traits, float, double)
TENON_KERNEL_WITH(softplus, elementwise_traits, float, double)
TENON_KERNEL_WITH(mish, elementwise_traits, float, double)
TENON_KERNEL_WITH(gelu, elementwise_traits, float, double)
TENON_KERNEL_WITH(silu, elementwise_traits, float, double)
}  // namespace tenon::cuda
