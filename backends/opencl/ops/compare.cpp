// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 are compared as f32, between the SDK's conversions.
#include "kernel/map.h"

#define TENON_COMPARED_TYPES \
  float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool

namespace tenon::opencl {
TENON_MAP_KERNEL(compare, equal, 2, TENON_COMPARED_TYPES)
TENON_MAP_KERNEL(compare, less, 2, TENON_COMPARED_TYPES)
TENON_MAP_KERNEL(compare, less_equal, 2, TENON_COMPARED_TYPES)
TENON_MAP_KERNEL(compare, greater, 2, TENON_COMPARED_TYPES)
TENON_MAP_KERNEL(compare, greater_equal, 2, TENON_COMPARED_TYPES)
}  // namespace tenon::opencl
