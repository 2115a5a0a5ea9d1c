// SPDX-License-Identifier: Apache-2.0
#include "kernel/map.h"

namespace tenon::opencl {
TENON_MAP_KERNEL(trigonometric, sin, 1, float, double)
TENON_MAP_KERNEL(trigonometric, cos, 1, float, double)
TENON_MAP_KERNEL(trigonometric, atan, 1, float, double)
}  // namespace tenon::opencl
