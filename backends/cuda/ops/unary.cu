// SPDX-License-Identifier: Apache-2.0
// Neg, Relu, Sigmoid, Tanh and their gradients in terms of the result.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
TENON_UNARY_KERNEL(neg, functions::Neg{}, float, double, std::int32_t, std::int64_t)
TENON_UNARY_KERNEL(relu, functions::Relu{}, float, double)
TENON_BINARY_KERNEL(relu_grad, functions::ReluGrad{}, float, double)
TENON_UNARY_KERNEL(sigmoid, functions::Sigmoid{}, float, double)
TENON_BINARY_KERNEL(sigmoid_grad, functions::SigmoidGrad{}, float, double)
TENON_UNARY_KERNEL(tanh, functions::Tanh{}, float, double)
TENON_BINARY_KERNEL(tanh_grad, functions::TanhGrad{}, float, double)
}  // namespace tenon::cuda
