// SPDX-License-Identifier: Apache-2.0
// workers.h - distributes tasks of unequal length among the host's threads, each with its own working memory.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// The largest number of threads that work on `tasks` tasks.
inline std::int64_t worker_count(const sdk::Host& host, std::int64_t tasks) {
  return std::max<std::int64_t>(1, std::min<std::int64_t>(tasks, host.thread_count()));
}

/// Calls body(task, worker) for each task in [0, tasks). Each worker takes its own part of the tasks in ascending order, then the next ones
/// of others that are not finished, so that consecutive loops over the same data find it in the same core's cache;
/// worker < worker_count(host, tasks), and a worker runs one task at a time.
template <class Body>
void for_each_task(const sdk::Host& host, std::int64_t tasks, const Body& body) {
  struct alignas(64) Part {
    std::atomic<std::int64_t> next{0};
  };
  constexpr std::int64_t max_parts = 64;
  const std::int64_t workers = worker_count(host, tasks);
  const std::int64_t parts = std::min(workers, max_parts);
  std::array<Part, max_parts> part_of;
  for (std::int64_t i = 0; i < parts; ++i) part_of[static_cast<std::size_t>(i)].next.store(i * tasks / parts, std::memory_order_relaxed);
  host.parallel_for(workers, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) {
      for (std::int64_t i = 0; i < parts; ++i) {
        const std::int64_t part = (worker + i) % parts;
        const std::int64_t part_end = (part + 1) * tasks / parts;
        std::atomic<std::int64_t>& next = part_of[static_cast<std::size_t>(part)].next;
        while (next.load(std::memory_order_relaxed) < part_end) {
          const std::int64_t task = next.fetch_add(1, std::memory_order_relaxed);
          if (task < part_end) body(task, worker);
        }
      }
    }
  });
}

}  // namespace tenon::openblas
