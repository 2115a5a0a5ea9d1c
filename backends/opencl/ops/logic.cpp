// SPDX-License-Identifier: Apache-2.0
#include "kernel/map.h"

namespace tenon::opencl {
TENON_MAP_KERNEL(logic, logical_and, 2, bool)
TENON_MAP_KERNEL(logic, logical_or, 2, bool)
TENON_MAP_KERNEL(logic, logical_xor, 2, bool)
TENON_MAP_KERNEL(logic, logical_not, 1, bool)
TENON_MAP_KERNEL(logic, is_nan, 1, float, double)
TENON_MAP_KERNEL(logic, is_inf, 1, float, double)
}  // namespace tenon::opencl
