// SPDX-License-Identifier: Apache-2.0
// Sine, cosine and arc tangent.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
TENON_UNARY_KERNEL(sin, functions::Sin{}, float, double)
TENON_UNARY_KERNEL(cos, functions::Cos{}, float, double)
TENON_UNARY_KERNEL(atan, functions::Atan{}, float, double)
}  // namespace tenon::cuda
