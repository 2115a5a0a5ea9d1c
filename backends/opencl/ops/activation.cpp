// SPDX-License-Identifier: Apache-2.0
#include "kernel/map.h"

namespace tenon::opencl {
namespace {

template <class T>
void with_alpha(const sdk::Call& call, const char* function) {
  map<1>(call, sources::activation, function, types<T>(), static_cast<T>(call.attr<tenon_attributes_alpha>().alpha));
}

template <class T>
void leaky_relu(const sdk::Call& call) {
  with_alpha<T>(call, "op_leaky_relu");
}

template <class T>
void elu(const sdk::Call& call) {
  with_alpha<T>(call, "op_elu");
}

template <class T>
void gelu(const sdk::Call& call) {
  map<1>(call, sources::activation, call.attr<tenon_attributes_gelu>().approximate_tanh == 0 ? "op_gelu" : "op_gelu_tanh", types<T>());
}

}  // namespace
TENON_KERNEL_WITH(leaky_relu, elementwise_traits, float, double)
TENON_KERNEL_WITH(elu, elementwise_traits, float, double)
TENON_MAP_KERNEL(activation, softplus, 1, float, double)
TENON_MAP_KERNEL(activation, mish, 1, float, double)
TENON_KERNEL_WITH(gelu, elementwise_traits, float, double)
TENON_MAP_KERNEL(activation, silu, 1, float, double)
}  // namespace tenon::opencl
