// SPDX-License-Identifier: Apache-2.0
// exec/running.h - detection of a second thread in an object that runs once at a time.
#pragma once

#include <fmt/core.h>

#include <atomic>

#include <tenon/error.h>

namespace tenon::exec {

/// Marks an object as running. Without it, a second thread would overwrite the addresses of the first, and both get wrong results.
class Running {
 public:
  /// `what` is the object's class in messages, and `type` in C++. Errors  it is running already.
  Running(std::atomic<bool>& running, const char* what, const char* type) : running_(running) {
    if (running_.exchange(true, std::memory_order_acquire)) {
      throw Error(
          fmt::format("{}: it is running on another thread, and runs once at a time; use one {} per thread, or a lock", what, type));
    }
  }
  ~Running() { running_.store(false, std::memory_order_release); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::atomic<bool>& running_;
};

}  // namespace tenon::exec
