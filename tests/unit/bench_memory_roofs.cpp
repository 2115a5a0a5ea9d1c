// SPDX-License-Identifier: Apache-2.0
// The bandwidth of memory that percentages of roof refer to.
#include "cli/memory_roofs.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "cli/measuring_threads.h"
#include "exec/thread_pool.h"

using namespace tenon::cli;

TEST_CASE("measuring threads: they are at most as many as processors, and all run each task") {
  const auto available = static_cast<int>(tenon::exec::available_threads());
  for (const int asked : {1, 2, available, available + 1, 10'000}) {
    CAPTURE(asked);
    MeasuringThreads threads(asked);
    CHECK(threads.count() == (asked < available ? asked : available));
    for (int task = 0; task < 50; ++task) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(threads.count()));
      CHECK(threads.run([&](int thread) { ++runs[static_cast<std::size_t>(thread)]; }) >= 0);
      for (const auto& count : runs) CHECK(count == 1);
    }
  }
}

TEST_CASE("memory roofs: the loop that measures reads reads each element once") {
  constexpr std::int64_t most = 1000;
  std::vector<float> values(most);
  for (std::int64_t i = 0; i < most; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i + 1);
  for (std::int64_t count = 0; count <= most; ++count) {
    CAPTURE(count);
    CHECK(sum(values.data(), count) == static_cast<float>(count * (count + 1) / 2));  // integers below 2^24: exact in any order
  }
}

TEST_CASE("memory roofs: the peak is the fastest of the loops, so that none of them exceeds it") {
  const MemoryRoofs roofs{.copy = 41, .scale = 44, .add = 46, .triad = 45, .read = 56};
  CHECK(roofs.peak() == 56);
  CHECK(MemoryRoofs{.copy = 60, .scale = 44, .add = 46, .triad = 45, .read = 56}.peak() == 60);  // stores that bypass the caches
}

TEST_CASE("memory roofs: every loop is measured, on one thread and on several, also of sizes that threads do not divide") {
  for (const int threads : {1, 2, 3}) {
    const MemoryRoofs roofs = memory_roofs(threads, 4 * 100'003);
    for (const double rate : {roofs.copy, roofs.scale, roofs.add, roofs.triad, roofs.read}) {
      CHECK(rate > 0);
      CHECK(rate <= roofs.peak());
    }
  }
}
