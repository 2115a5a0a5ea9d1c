// SPDX-License-Identifier: Apache-2.0
// Waiting on atomics: no wake-up is lost.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "exec/thread_pool.h"
#include "platform/wait.h"

namespace tenon {
namespace {

/// Waits until the atomic has another value than `old`.
void wait_past(std::atomic<std::uint32_t>& atomic, std::uint32_t old) {
  while (atomic.load() == old) platform::wait(atomic, old);
}

TEST_CASE("wait: two threads wake each other in turn, 20000 times") {
  constexpr std::uint32_t rounds = 20000;
  std::atomic<std::uint32_t> ping{0}, pong{0};
  std::thread other([&] {
    for (std::uint32_t i = 0; i < rounds; ++i) {
      wait_past(ping, i);
      pong.store(i + 1);
      platform::wake_one(pong);
    }
  });
  for (std::uint32_t i = 0; i < rounds; ++i) {
    ping.store(i + 1);
    platform::wake_all(ping);
    wait_past(pong, i);
  }
  other.join();
  CHECK(pong.load() == rounds);
}

TEST_CASE("wait: all that wait are woken; a value that has changed already is not waited for") {
  std::atomic<std::uint32_t> gate{0}, passed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      wait_past(gate, 0);
      passed.fetch_add(1);
    });
  }
  gate.store(1);
  platform::wake_all(gate);
  for (std::thread& thread : threads) thread.join();
  CHECK(passed.load() == 4);
  platform::wait(gate, 0);
}

TEST_CASE("thread pool: 20000 loops, each of which wakes workers that sleep at once") {
  exec::ThreadPool pool(2, 0);
  std::atomic<std::int64_t> sum{0};
  for (int i = 0; i < 20000; ++i) {
    pool.parallel_for(
        2, 1,
        [](void* argument, std::int64_t begin, std::int64_t end) {
          static_cast<std::atomic<std::int64_t>*>(argument)->fetch_add(end - begin);
        },
        &sum);
  }
  CHECK(sum.load() == 40000);
}

}  // namespace
}  // namespace tenon
