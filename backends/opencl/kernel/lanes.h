// SPDX-License-Identifier: Apache-2.0
// lanes.h - how many work-items share one line of a reduction (kernel/common.cl).
#pragma once

#include <cstdint>

#include "kernel/launch.h"

namespace tenon::opencl {

/// A power of two up to the group's size: each lane has a few terms at least.
inline std::uint32_t lanes_for(std::int64_t terms) {
  std::uint32_t width = 1;
  while (width < Launch::group_size && terms >= 16 * std::int64_t{width}) width *= 2;
  return width;
}

}  // namespace tenon::opencl
