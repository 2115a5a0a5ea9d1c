// SPDX-License-Identifier: Apache-2.0
#include "train/rank_threads.h"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>

#include <tenon/error.h>

#include "exec/device_state.h"

namespace tenon::train {

RankThreads::RankThreads(int ranks) {
  failures_.resize(static_cast<std::size_t>(ranks));
  threads_.reserve(static_cast<std::size_t>(ranks - 1));
  try {
    for (int rank = 1; rank < ranks; ++rank) threads_.emplace_back([this, rank] { work(rank); });
  } catch (const std::system_error& problem) {
    const std::size_t started = threads_.size();
    join_all();
    throw Error(
        Status::out_of_memory,
        fmt::format(
            "devices: expected to start {} threads, one for each of {} devices but the first, got {}: {}; train on fewer devices, or "
            "raise the limit of the process's memory or threads",
            ranks - 1, ranks, started, problem.code().message()));
  } catch (...) {
    join_all();
    throw;
  }
}

RankThreads::~RankThreads() {
  join_all();
}

void RankThreads::join_all() {
  stop_.store(true, std::memory_order_relaxed);
  start();
  for (std::thread& thread : threads_) thread.join();
}

void RankThreads::start() {
  runs_.fetch_add(1, std::memory_order_release);
  platform::wake_all(runs_);
}

void RankThreads::work(int rank) {
  for (std::uint32_t seen = 0;;) {
    exec::wait_until(runs_, spin_limit_, [&] { return runs_.load(std::memory_order_acquire) != seen; });
    ++seen;
    if (stop_.load(std::memory_order_relaxed)) return;
    run(rank);
    left_.fetch_sub(1, std::memory_order_release);
    platform::wake_all(left_);
  }
}

void RankThreads::run(int rank) {
  try {
    (*body_)(rank);
  } catch (...) {
    failures_[static_cast<std::size_t>(rank)] = std::current_exception();
  }
}

const std::vector<std::exception_ptr>& RankThreads::run_all(const std::function<void(int)>& each) {
  std::ranges::fill(failures_, nullptr);
  body_ = &each;
  left_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
  start();
  run(0);
  exec::wait_until(left_, spin_limit_, [&] { return left_.load(std::memory_order_acquire) == 0; });
  return failures_;
}

RankThreads& RankThreads::of(std::unique_ptr<RankThreads>& threads, int ranks) {
  if (threads != nullptr && threads->generation_ != exec::fork_generation()) {
    static_cast<void>(threads.release());  // of the parent process: a child has none of its threads
  }
  if (threads == nullptr) threads = std::make_unique<RankThreads>(ranks);
  return *threads;
}

RunOptions shared_threads(std::span<const Device> devices, std::size_t rank, const RunOptions& options) {
  RunOptions own = options;
  if (own.threads != 0) return own;
  const auto pool_of = [](const Device& device) { return &device.state()->loaded->services->pool(); };
  const exec::ThreadPool* const pool = pool_of(devices[rank]);
  const auto sharing = std::ranges::count_if(devices, [&](const Device& other) { return pool_of(other) == pool; });
  const auto count = static_cast<std::uint32_t>(sharing);
  own.threads = (pool->budget() + count - 1) / count;
  return own;
}

}  // namespace tenon::train
