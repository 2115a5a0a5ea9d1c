// SPDX-License-Identifier: Apache-2.0
// train/rank_threads.h - the threads of devices that train at the same time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <tenon/context.h>
#include <tenon/program.h>

#include "exec/spin.h"
#include "exec/thread_pool.h"

namespace tenon::train {

/// The threads of all ranks but the first, whose thread is the caller's. Threads  one call at a time.
class RankThreads {
 public:
  /// Errors  the system does not start that many threads.
  explicit RankThreads(int ranks);
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  /// Runs each(rank) for every rank at the same time. Returns their failures, by rank, valid until the next call.
  const std::vector<std::exception_ptr>& run_all(const std::function<void(int)>& each);
  /// Threads for `ranks` ranks: those of `threads`, unless there are none or they are those of a parent process.
  static RankThreads& of(std::unique_ptr<RankThreads>& threads, int ranks);

 private:
  void start();
  void join_all();
  void work(int rank);
  void run(int rank);

  /// Between the steps of a fit there are tens of microseconds, unless data is waited for.
  static constexpr exec::Clock::duration spin_limit_ = std::chrono::microseconds(100);
  const std::uint32_t generation_ = exec::fork_generation();
  std::atomic<std::uint32_t> runs_{0}, left_{0};
  std::atomic<bool> stop_{false};
  const std::function<void(int)>* body_ = nullptr;
  std::vector<std::exception_ptr> failures_;
  std::vector<std::thread> threads_;
};

/// The options of rank `rank` on its device: how many threads its kernels may use, if others of the devices share its pool.
RunOptions shared_threads(std::span<const Device> devices, std::size_t rank, const RunOptions& options);

}  // namespace tenon::train
