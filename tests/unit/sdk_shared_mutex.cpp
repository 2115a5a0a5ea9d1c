// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tenon/sdk/shared_mutex.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

TEST_CASE("shared mutex: writers are alone, readers are together, from the first use on") {
  constexpr int rounds = 200, thread_count = 4, steps = 100;
  for (int round = 0; round < rounds; ++round) {
    tenon::sdk::SharedMutex mutex;
    long value = 0;
    std::atomic<int> torn{0}, ready{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t) {
      threads.emplace_back([&, t] {
        for (++ready; ready < thread_count;) std::this_thread::yield();
        for (int i = 0; i < steps; ++i) {
          if ((i + t) % 2 == 0) {
            const std::unique_lock lock(mutex);
            const long before = value;
            std::this_thread::yield();
            value = before + 1;
          } else {
            const std::shared_lock lock(mutex);
            const long before = value;
            std::this_thread::yield();
            if (value != before) ++torn;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(value == thread_count * steps / 2);
    REQUIRE(torn == 0);
  }
}

TEST_CASE("shared mutex: readers hold it at the same time") {
  tenon::sdk::SharedMutex mutex;
  const std::shared_lock first(mutex);
  std::thread([&] { const std::shared_lock second(mutex); }).join();  // would not end
}
