// SPDX-License-Identifier: Apache-2.0
// loop_counts.h - a loop body that counts how often each index is run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::test {

struct Counts {
  std::vector<std::atomic<int>> seen;
  explicit Counts(std::size_t n) : seen(n) {}
  static void body(void* argument, std::int64_t begin, std::int64_t end) {
    auto& counts = *static_cast<Counts*>(argument);
    for (std::int64_t i = begin; i < end; ++i) counts.seen[static_cast<std::size_t>(i)].fetch_add(1);
  }
  bool all_once() const {
    for (const auto& n : seen) {
      if (n.load() != 1) return false;
    }
    return true;
  }
};

}  // namespace tenon::test
