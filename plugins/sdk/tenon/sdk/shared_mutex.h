// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/shared_mutex.h - a mutex for many readers or one writer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tenon::sdk {

/// As std::shared_mutex, for std::shared_lock and std::unique_lock. MinGW's std::shared_mutex lets two threads in at times, if its first
/// users come at once. A writer waits until there is no reader; readers that come meanwhile go first.
///
/// Threads  any.
class SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !has_writer_ && readers_ == 0; });
    has_writer_ = true;
  }
  bool try_lock() {
    const std::lock_guard lock(mutex_);
    if (has_writer_ || readers_ > 0) return false;
    return has_writer_ = true;
  }
  void unlock() {
    const std::lock_guard lock(mutex_);
    has_writer_ = false;
    changed_.notify_all();
  }
  void lock_shared() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !has_writer_; });
    ++readers_;
  }
  void unlock_shared() {
    const std::lock_guard lock(mutex_);
    if (--readers_ == 0) changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t readers_ = 0;
  bool has_writer_ = false;
};

}  // namespace tenon::sdk
