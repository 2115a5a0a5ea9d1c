// SPDX-License-Identifier: Apache-2.0
// Elementwise activations (functions.cuh).
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
namespace {

template <class T>
void gelu(const sdk::Call& call) {
  if (call.attr<tenon_attributes_gelu>().approximate_tanh == 0) {
    map<T, T>(call, functions::Gelu{});
  } else {
    map<T, T>(call, functions::GeluTanh{});
  }
}

}  // namespace
TENON_UNARY_KERNEL(leaky_relu, functions::LeakyRelu<T>{static_cast<T>(call.attr<tenon_attributes_alpha>().alpha)}, float, double)
TENON_UNARY_KERNEL(elu, functions::Elu<T>{static_cast<T>(call.attr<tenon_attributes_alpha>().alpha)}, float, double)
TENON_UNARY_KERNEL(softplus, functions::Softplus{}, float, double)
TENON_UNARY_KERNEL(mish, functions::Mish{}, float, double)
TENON_KERNEL_WITH(gelu, elementwise_traits, float, double)
TENON_UNARY_KERNEL(silu, functions::Silu{}, float, double)
}  // namespace tenon::cuda
