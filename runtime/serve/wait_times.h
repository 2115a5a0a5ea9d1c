// SPDX-License-Identifier: Apache-2.0
// serve/wait_times.h - percentiles of the latest waiting times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tenon::serve {

/// The last `capacity` waiting times.
/// Threads  one call at a time.
class WaitTimes {
 public:
  static constexpr std::size_t capacity = 4096;

  void add(double us) {
    if (us_.size() < capacity) {
      us_.push_back(us);
    } else {
      us_[next_] = us;
    }
    next_ = (next_ + 1) % capacity;
  }
  const std::vector<double>& us() const { return us_; }

 private:
  std::vector<double> us_;
  std::size_t next_ = 0;  ///< the place of the oldest, once there are `capacity`
};

/// The smallest value that at least this fraction of the values do not exceed; 0 without values. Requires ascending values.
inline double percentile(const std::vector<double>& ascending, double fraction) {
  if (ascending.empty()) return 0;
  const auto rank = static_cast<std::size_t>(fraction * static_cast<double>(ascending.size()));
  return ascending[std::min(rank, ascending.size() - 1)];
}

}  // namespace tenon::serve
