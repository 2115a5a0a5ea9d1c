// SPDX-License-Identifier: Apache-2.0
// workers.h - distributes tasks of unequal length among the host's threads, each with its own working memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// The largest number of threads that work on `tasks` tasks.
inline std::int64_t worker_count(const sdk::Host& host, std::int64_t tasks) {
  return std::max<std::int64_t>(1, std::min<std::int64_t>(tasks, host.thread_count()));
}

/// Calls body(task, worker) for each task in [0, tasks). Free workers take tasks in ascending order; worker < worker_count(host, tasks),
/// and a worker runs one task at a time.
template <class Body>
void for_each_task(const sdk::Host& host, std::int64_t tasks, const Body& body) {
  std::atomic<std::int64_t> next{0};
  host.parallel_for(worker_count(host, tasks), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) {
      for (std::int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) body(task, worker);
    }
  });
}

}  // namespace tenon::openblas
