// SPDX-License-Identifier: Apache-2.0
// plan_cache.h - what a device has chosen for each problem.
#pragma once

#include <map>
#include <memory>
#include <mutex>

namespace tenon::cuda {

/// Plans by problem; they stay where they are.
///
/// Threads  any
template <class Problem, class Plan>
class PlanCache {
 public:
  /// The plan of a problem; the first call makes it by `make(problem)`.
  template <class Make>
  const Plan& get(const Problem& problem, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(problem);
    if (found != plans_.end()) return *found->second;
    auto made = std::make_unique<const Plan>(make(problem));
    return *plans_.emplace(problem, std::move(made)).first->second;
  }
  /// The plan of a problem; NULL if none was made.
  const Plan* find(const Problem& problem) const {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(problem);
    return found == plans_.end() ? nullptr : found->second.get();
  }

 private:
  mutable std::mutex mutex_;
  std::map<Problem, std::unique_ptr<const Plan>> plans_;
};

}  // namespace tenon::cuda
