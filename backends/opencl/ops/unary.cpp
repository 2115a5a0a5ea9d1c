// SPDX-License-Identifier: Apache-2.0
#include "kernel/map.h"

namespace tenon::opencl {
TENON_MAP_KERNEL(unary, neg, 1, float, double, std::int32_t, std::int64_t)
TENON_MAP_KERNEL(unary, relu, 1, float, double)
TENON_MAP_KERNEL(unary, relu_grad, 2, float, double)
TENON_MAP_KERNEL(unary, sigmoid, 1, float, double)
TENON_MAP_KERNEL(unary, sigmoid_grad, 2, float, double)
TENON_MAP_KERNEL(unary, tanh, 1, float, double)
TENON_MAP_KERNEL(unary, tanh_grad, 2, float, double)
}  // namespace tenon::opencl
