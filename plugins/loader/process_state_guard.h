// SPDX-License-Identifier: Apache-2.0
// loader/process_state_guard.h - what a plugin changes of the process while it is called becomes a warning.
#pragma once

#include <fmt/format.h>

#include <optional>

#include "loader/loader.h"
#include "loader/self_check.h"
#include "platform/process.h"

namespace tenon::loader {

enum class Threads { forbidden, allowed };

/// Records what the plugin changes between construction and destruction, and restores it where possible.
class ProcessStateGuard {
 public:
  ProcessStateGuard(Record& record, const char* phase, Threads threads)
      : record_(record), phase_(phase), floating_point_(FloatingPoint::current()) {
    if (threads == Threads::forbidden) threads_ = platform::thread_count();
  }
  ~ProcessStateGuard() {
    if (const auto change = FloatingPoint::current().change_since(floating_point_)) {
      floating_point_.restore();
      record_.warnings.push_back(fmt::format("{} {}; it has been restored", phase_, *change));
    }
    // Another thread of the process may have started one meanwhile, so this is only a warning.
    if (const auto now = threads_ ? platform::thread_count() : std::nullopt; now && *now > *threads_) {
      record_.warnings.push_back(fmt::format("{} seems to start threads: there were {}, there are {}", phase_, *threads_, *now));
    }
  }
  ProcessStateGuard(const ProcessStateGuard&) = delete;
  ProcessStateGuard& operator=(const ProcessStateGuard&) = delete;

 private:
  Record& record_;
  const char* phase_;
  FloatingPoint floating_point_;
  std::optional<int> threads_;
};

}  // namespace tenon::loader
