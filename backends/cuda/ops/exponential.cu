// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, erf.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
TENON_UNARY_KERNEL(exp, functions::Exp{}, float, double)
TENON_UNARY_KERNEL(expm1, functions::Expm1{}, float, double)
TENON_UNARY_KERNEL(log, functions::Log{}, float, double)
TENON_UNARY_KERNEL(log2, functions::Log2{}, float, double)
TENON_UNARY_KERNEL(log1p, functions::Log1p{}, float, double)
TENON_UNARY_KERNEL(erf, functions::Erf{}, float, double)
}  // namespace tenon::cuda
