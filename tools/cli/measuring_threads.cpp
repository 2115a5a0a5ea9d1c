// SPDX-License-Identifier: Apache-2.0
#include "cli/measuring_threads.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>

#include <tenon/error.h>

#include "exec/thread_pool.h"

namespace tenon::cli {

using Clock = std::chrono::steady_clock;

struct MeasuringThreads::Task {
  const std::function<void(int)>* body;
  std::atomic<int> waiting;
  std::vector<Clock::time_point> begin, end;  // per thread

  void run(int thread) {
    --waiting;
    while (waiting > 0) std::this_thread::yield();
    begin[static_cast<std::size_t>(thread)] = Clock::now();
    (*body)(thread);
    end[static_cast<std::size_t>(thread)] = Clock::now();
  }
};

MeasuringThreads::MeasuringThreads(int count) : count_(std::clamp(count, 1, static_cast<int>(exec::available_threads()))) {
  try {
    for (int t = 1; t < count_; ++t) others_.emplace_back([this, t] { serve(t); });
  } catch (const std::system_error& error) {
    stop();
    throw Error(fmt::format("cannot create {} threads: {}", count_, error.what()));
  }
}

MeasuringThreads::~MeasuringThreads() {
  stop();
}

void MeasuringThreads::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& other : others_) other.join();
}

void MeasuringThreads::serve(int thread) {
  std::unique_lock lock(mutex_);
  for (std::uint64_t served = 0;; served = tasks_) {
    changed_.wait(lock, [&] { return stopping_ || tasks_ != served; });
    if (stopping_) return;
    Task& task = *task_;
    lock.unlock();
    task.run(thread);
    lock.lock();
    if (--running_ == 0) changed_.notify_all();
  }
}

double MeasuringThreads::run(const std::function<void(int)>& body) {
  const auto size = static_cast<std::size_t>(count_);
  Task task{.body = &body, .waiting = count_, .begin = std::vector<Clock::time_point>(size), .end = std::vector<Clock::time_point>(size)};
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    running_ = count_ - 1;
    ++tasks_;
  }
  changed_.notify_all();
  task.run(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ == 0; });
  return std::chrono::duration<double>(*std::ranges::max_element(task.end) - *std::ranges::min_element(task.begin)).count();
}

}  // namespace tenon::cli
