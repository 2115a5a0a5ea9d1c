// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 are compared as f32, between the SDK's conversions.
#include <tenon/sdk/element.h>

#include "kernel/map.h"

namespace tenon::opencl {
TENON_MAP_KERNEL(compare, equal, 2, TENON_COMPARABLE_TYPES)
TENON_MAP_KERNEL(compare, less, 2, TENON_COMPARABLE_TYPES)
TENON_MAP_KERNEL(compare, less_equal, 2, TENON_COMPARABLE_TYPES)
TENON_MAP_KERNEL(compare, greater, 2, TENON_COMPARABLE_TYPES)
TENON_MAP_KERNEL(compare, greater_equal, 2, TENON_COMPARABLE_TYPES)
}  // namespace tenon::opencl
