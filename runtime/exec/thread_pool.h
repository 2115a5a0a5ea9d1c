// SPDX-License-Identifier: Apache-2.0
// exec/thread_pool.h - the host's threads: parallel loops with a fixed budget.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace tenon::exec {

/// Runs loops on the calling thread and `budget - 1` workers. Loops that several threads start at the same time share the workers, so that
/// no more than `budget` threads compute, unless there are more callers than that; a loop started inside a body runs only on its caller.
/// How a loop is split depends only on its count, grain and threads. A caller waits only for chunks that a worker has begun; workers and
/// callers spin for a limited time, then sleep.
/// Threads  any; a child process of fork() gets new workers at its first loop.
class ThreadPool {
 public:
  static constexpr std::uint32_t default_spin_us = 200;
  /// budget >= 1 threads, including the caller. An idle worker spins for at most `spin_us` microseconds before it sleeps, and for less
  /// while loops arrive too rarely for that to help; 0 sleeps at once.
  explicit ThreadPool(std::uint32_t budget, std::uint32_t spin_us = default_spin_us);
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
  /// The workers of this process, started if there are none; null while another thread starts them.
  Workers* workers();

  const std::uint32_t budget_;
  const std::uint32_t spin_us_;
  std::atomic<Workers*> workers_{nullptr};  ///< owned; null while budget is 1 or nothing has run yet
  std::atomic<bool> starting_{false};
};

/// Number of CPUs that this process may run on, by its affinity.
std::uint32_t affinity_threads();

/// Number of threads that this process can keep busy: its CPUs, or fewer if the CPU quota of a cgroup is smaller (cpu_quota.h).
std::uint32_t available_threads();

/// Number of forks between the process that loaded the library and this one.
std::uint32_t fork_generation();

}  // namespace tenon::exec
