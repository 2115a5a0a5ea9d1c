// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "platform/per_thread.h"

using tenon::platform::PerThread;

namespace {

std::atomic<int> made{0}, destroyed{0};

/// Has memory of its own, which is read when it is destroyed.
struct Value {
  Value() : text(1000, 'x') { ++made; }
  ~Value() {
    if (text == std::string(1000, 'x')) ++destroyed;
  }
  std::string text;
};
constinit const PerThread<Value> value;

constinit const PerThread<std::vector<int>> numbers;
struct UsesAnother {
  ~UsesAnother() { ended_with = static_cast<int>(numbers->size()); }
  static inline std::atomic<int> ended_with{-1};
};
constinit const PerThread<UsesAnother> uses_another;

}  // namespace

TEST_CASE("per thread: each thread has its own object, which is destroyed when the thread ends") {
  made = destroyed = 0;
  constexpr int thread_count = 16;
  std::vector<std::thread> threads;
  std::atomic<int> same{0};
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&] {
      const Value* const first = &*value;
      std::vector<std::string> others(100, std::string(1000, 'y'));  // would reuse memory that was freed too early
      if (&*value == first) ++same;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(same == thread_count);
  CHECK(made == thread_count);
  CHECK(destroyed == thread_count);
}

TEST_CASE("per thread: a destructor may use the objects that were made before") {
  std::thread([] {
    numbers->assign(3, 0);
    static_cast<void>(*uses_another);
  }).join();
  CHECK(UsesAnother::ended_with == 3);
  std::thread([] {
    static_cast<void>(*uses_another);
    numbers->assign(3, 0);
  }).join();
  CHECK(UsesAnother::ended_with == 0);  // destroyed before, and made again
}
