// SPDX-License-Identifier: Apache-2.0
// cli/measuring_threads.h - the threads of the loops that measure the machine.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon::cli {

/// A set of threads, of which the caller is thread 0, that run the same loops one after the other. They are as many as are asked for, but
/// at most one for each processor that this process may use: of more threads some would run after others, each undisturbed.
class MeasuringThreads {
 public:
  /// Errors  a thread cannot be created.
  explicit MeasuringThreads(int count);
  ~MeasuringThreads();
  MeasuringThreads(const MeasuringThreads&) = delete;
  MeasuringThreads& operator=(const MeasuringThreads&) = delete;

  int count() const { return count_; }
  /// Runs body(thread) on each thread. Returns the seconds from the start of the first one to the end of the last one, without those that
  /// it takes to wake the threads: they wait for one another first.
  double run(const std::function<void(int)>& body);

 private:
  struct Task;
  void serve(int thread);
  void stop();

  const int count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Task* task_ = nullptr;
  std::uint64_t tasks_ = 0;  ///< so far
  int running_ = 0;          ///< threads other than the caller that have not ended the task
  bool stopping_ = false;
  std::vector<std::thread> others_;
};

}  // namespace tenon::cli
