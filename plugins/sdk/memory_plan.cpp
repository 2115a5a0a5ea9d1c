// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/memory_plan.h>

#include <algorithm>
#include <limits>
#include <string>

#include <tenon/sdk/error.h>

namespace tenon::sdk {

std::uint64_t assign_offsets(std::vector<Interval>& intervals) {
  std::vector<std::uint32_t> by_size(intervals.size());
  for (std::uint32_t i = 0; i < by_size.size(); ++i) by_size[i] = i;
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::uint32_t a, std::uint32_t b) { return intervals[a].size > intervals[b].size; });
  std::vector<std::uint32_t> placed;  // ordered by offset
  constexpr std::uint64_t max_size = std::numeric_limits<std::int64_t>::max();
  std::uint64_t total = 0;
  for (const std::uint32_t i : by_size) {
    Interval& interval = intervals[i];
    std::uint64_t offset = 0;
    for (const std::uint32_t p : placed) {
      const Interval& other = intervals[p];
      if (other.last < interval.first || interval.last < other.first) continue;
      if (other.offset >= offset + interval.size) break;
      offset = std::max(offset, other.offset + other.size);
    }
    interval.offset = offset;
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), offset, [&](std::uint64_t o, std::uint32_t p) { return o < intervals[p].offset; }),
        i);
    // Each block fits 63 bits, so the sum of two does not overflow.
    total = std::max(total, offset + interval.size);
    if (total > max_size) throw Error(TENON_OUT_OF_MEMORY, "a workspace of more than " + std::to_string(max_size) + " bytes");
  }
  return total;
}

}  // namespace tenon::sdk
