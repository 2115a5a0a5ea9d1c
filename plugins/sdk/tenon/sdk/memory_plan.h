// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/memory_plan.h - shared memory for values that are not alive at the same time.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::sdk {

/// A block that is needed from step `first` to step `last`, both included.
struct Interval {
  std::uint32_t first, last;
  std::uint64_t size;  ///< bytes, a multiple of the alignment (aligned_size)
  std::uint64_t offset = 0;
};

/// Sets the offsets so that blocks alive at the same step do not overlap; returns the total size in bytes. Lowest free offset, largest
/// block first: within a few percent of the optimum for graphs of layers. Throws OUT_OF_MEMORY if the total exceeds 63 bits; each block
/// must fit them. Source  Pisarchyk and Lee: Efficient Memory Management for Deep Neural Net Inference (2020), greedy by size.
std::uint64_t assign_offsets(std::vector<Interval>& intervals);

}  // namespace tenon::sdk
