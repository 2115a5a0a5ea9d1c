// SPDX-License-Identifier: Apache-2.0
// Neg, Relu, Sigmoid, Tanh and their gradients in terms of the result.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
namespace {

template <class T>
void neg(const sdk::Call& call) {
  map<T, T>(call, functions::Neg{});
}

template <class T>
void relu(const sdk::Call& call) {
  map<T, T>(call, functions::Relu{});
}

template <class T>
void relu_grad(const sdk::Call& call) {
  map<T, T, T>(call, functions::ReluGrad{});
}

template <class T>
void sigmoid(const sdk::Call& call) {
  map<T, T>(call, functions::Sigmoid{});
}

template <class T>
void sigmoid_grad(const sdk::Call& call) {
  map<T, T, T>(call, functions::SigmoidGrad{});
}

template <class T>
void tanh(const sdk::Call& call) {
  map<T, T>(call, functions::Tanh{});
}

template <class T>
void tanh_grad(const sdk::Call& call) {
  map<T, T, T>(call, functions::TanhGrad{});
}

}  // namespace
TENON_KERNEL_WITH(neg, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(relu, elementwise_traits, float, double)
TENON_KERNEL_WITH(relu_grad, elementwise_traits, float, double)
TENON_KERNEL_WITH(sigmoid, elementwise_traits, float, double)
TENON_KERNEL_WITH(sigmoid_grad, elementwise_traits, float, double)
TENON_KERNEL_WITH(tanh, elementwise_traits, float, double)
TENON_KERNEL_WITH(tanh_grad, elementwise_traits, float, double)
}  // namespace tenon::cuda
