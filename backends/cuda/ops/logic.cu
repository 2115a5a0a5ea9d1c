// SPDX-License-Identifier: Apache-2.0
// And, Or, Xor, Not of bool; IsNaN, IsInf.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
TENON_BINARY_KERNEL(logical_and, functions::And{}, bool)
TENON_BINARY_KERNEL(logical_or, functions::Or{}, bool)
TENON_BINARY_KERNEL(logical_xor, functions::Xor{}, bool)
TENON_UNARY_KERNEL(logical_not, functions::Not{}, bool)
TENON_UNARY_KERNEL(is_nan, functions::IsNaN{}, float, double)
TENON_UNARY_KERNEL(is_inf, functions::IsInf{}, float, double)
}  // namespace tenon::cuda
