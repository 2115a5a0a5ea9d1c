// SPDX-License-Identifier: Apache-2.0
// exec/thread_pool.h - the host's threads: parallel loops with a fixed budget.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace tenon::exec {

/// Runs loops on the calling thread and `budget - 1` workers. Only one loop at a time uses the workers; a loop started meanwhile (inside a
/// body, or by another thread) runs only on its caller. Workers spin briefly for the next loop, then sleep.
/// Threads  any; a child process of fork() gets new workers at its first loop.
class ThreadPool {
 public:
  /// budget >= 1 threads, including the caller.
  explicit ThreadPool(std::uint32_t budget);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::uint32_t budget() const { return budget_; }
  using Body = void (*)(void* argument, std::int64_t begin, std::int64_t end);
  /// Implements tenon_host.parallel_for, on at most `threads` threads, the caller's included.
  void parallel_for(std::int64_t count, std::int64_t grain, Body body, void* argument, std::uint32_t threads);
  void parallel_for(std::int64_t count, std::int64_t grain, Body body, void* argument) {
    parallel_for(count, grain, body, argument, budget_);
  }

 private:
  struct Workers;
  const std::uint32_t budget_;
  std::unique_ptr<Workers> workers_;  ///< null while budget is 1 or nothing has run yet
  std::atomic<bool> busy_{false};
};

/// Number of CPUs that this process may run on, by its affinity.
std::uint32_t affinity_threads();

/// Number of threads that this process can keep busy: its CPUs, or fewer if the CPU quota of a cgroup is smaller (cpu_quota.h).
std::uint32_t available_threads();

/// Number of forks between the process that loaded the library and this one.
std::uint32_t fork_generation();

}  // namespace tenon::exec
