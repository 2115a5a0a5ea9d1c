// SPDX-License-Identifier: Apache-2.0
#include "kernel/map.h"

namespace tenon::opencl {
TENON_MAP_KERNEL(exponential, exp, 1, float, double)
TENON_MAP_KERNEL(exponential, expm1, 1, float, double)
TENON_MAP_KERNEL(exponential, log, 1, float, double)
TENON_MAP_KERNEL(exponential, log2, 1, float, double)
TENON_MAP_KERNEL(exponential, log1p, 1, float, double)
TENON_MAP_KERNEL(exponential, erf, 1, float, double)
}  // namespace tenon::opencl
