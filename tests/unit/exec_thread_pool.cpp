// SPDX-License-Identifier: Apache-2.0
// The host's thread pool: every index once, nested and concurrent loops, workers that stall.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "exec/thread_pool.h"
#include "loop_counts.h"

namespace tenon::exec {
namespace {

using test::Counts;

TEST_CASE("parallel_for: every index once, for any count, grain and budget") {
  for (const std::uint32_t budget : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(budget);
    for (const std::int64_t count : {0, 1, 2, 7, 64, 1000}) {
      for (const std::int64_t grain : {0, 1, 3, 64, 5000}) {
        Counts counts(static_cast<std::size_t>(count));
        pool.parallel_for(count, grain, Counts::body, &counts);
        CHECK(counts.all_once());
      }
    }
  }
}

TEST_CASE("parallel_for: a loop with a smaller budget runs on fewer threads") {
  ThreadPool pool(4);
  struct Seen {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::int64_t indices = 0;
    static void body(void* argument, std::int64_t begin, std::int64_t end) {
      auto& seen = *static_cast<Seen*>(argument);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      const std::lock_guard lock(seen.mutex);
      seen.threads.insert(std::this_thread::get_id());
      seen.indices += end - begin;
    }
  };
  for (const std::uint32_t threads : {1u, 2u, 9u}) {
    for (int round = 0; round < 5; ++round) {
      Seen seen;
      pool.parallel_for(200, 1, Seen::body, &seen, threads);
      CHECK(seen.indices == 200);
      CHECK(seen.threads.size() <= std::min(threads, 4u));
      if (threads == 1) CHECK(seen.threads.count(std::this_thread::get_id()) == 1);
    }
  }
}

TEST_CASE("parallel_for: a loop inside a body runs inline and completes") {
  ThreadPool pool(2);
  struct Outer {
    ThreadPool* pool;
    std::atomic<int> total{0};
  } outer{&pool};
  pool.parallel_for(
      8, 1,
      [](void* argument, std::int64_t begin, std::int64_t end) {
        auto& o = *static_cast<Outer*>(argument);
        for (std::int64_t i = begin; i < end; ++i) {
          Counts inner(10);
          o.pool->parallel_for(10, 1, Counts::body, &inner);
          if (inner.all_once()) o.total.fetch_add(1);
        }
      },
      &outer);
  CHECK(outer.total.load() == 8);
}

TEST_CASE("parallel_for: many loops from many threads") {
  ThreadPool pool(2);
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        Counts counts(50);
        pool.parallel_for(50, 5, Counts::body, &counts);
        if (counts.all_once()) good.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good.load() == 800);
}

TEST_CASE("parallel_for: more callers than the pool has room for") {
  ThreadPool pool(3, 0);  // threads that sleep at once change their states more often
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 24; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::int64_t count = 1 + (i * 7 + t * 13) % 90;
        Counts counts(static_cast<std::size_t>(count));
        pool.parallel_for(count, 1 + i % 3, Counts::body, &counts, 1 + static_cast<std::uint32_t>(i) % 4);
        if (counts.all_once()) good.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good.load() == 2400);
}

/// The ranges that a body is called with.
struct Ranges {
  std::mutex mutex;
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  static void body(void* argument, std::int64_t begin, std::int64_t end) {
    auto& ranges = *static_cast<Ranges*>(argument);
    const std::lock_guard lock(ranges.mutex);
    ranges.seen.emplace(begin, end);
  }
};

TEST_CASE("parallel_for: ranges are whole grains, and the same in loops that run inside bodies") {
  ThreadPool pool(3);
  for (const std::int64_t count : {1, 5, 64, 1000, 100003}) {
    for (const std::int64_t grain : {1, 7, 64}) {
      CAPTURE(count);
      CAPTURE(grain);
      struct Loop {
        ThreadPool* pool;
        std::int64_t count, grain;
        Ranges inner;
      } loop{&pool, count, grain, {}};
      Ranges outer;
      pool.parallel_for(count, grain, Ranges::body, &outer);
      pool.parallel_for(
          2, 1,
          [](void* argument, std::int64_t, std::int64_t) {
            auto& given = *static_cast<Loop*>(argument);
            given.pool->parallel_for(given.count, given.grain, Ranges::body, &given.inner);
          },
          &loop);
      CHECK(outer.seen == loop.inner.seen);
      std::int64_t next = 0;
      for (const auto& [begin, end] : outer.seen) {
        CHECK(begin == next);
        if (end != count) CHECK((end - begin) % grain == 0);
        next = end;
      }
      CHECK(next == count);
    }
  }
}

TEST_CASE("parallel_for: the chunks of a share shrink towards its end") {
  ThreadPool pool(1);
  Ranges ranges;
  pool.parallel_for(3200, 1, Ranges::body, &ranges);
  std::int64_t last = 3200;
  for (const auto& [begin, end] : ranges.seen) {
    CHECK(end - begin <= last);
    last = end - begin;
  }
  CHECK(last == 100);
}

TEST_CASE("parallel_for: workers that stall short loops pause, and come back") {
  ThreadPool pool(2);
  struct Seen {
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> stalls{true}, worker{false};
  } seen;
  const auto worker_takes_part = [&] {
    seen.worker = false;
    pool.parallel_for(
        64, 1,
        [](void* argument, std::int64_t, std::int64_t) {
          auto& all = *static_cast<Seen*>(argument);
          if (std::this_thread::get_id() == all.caller) {
            if (!all.stalls) std::this_thread::sleep_for(std::chrono::microseconds(200));
            return;
          }
          all.worker = true;
          if (all.stalls) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        },
        &seen);
    return seen.worker.load();
  };
  const auto eventually = [](const auto& holds) {  // the limit is only for a pool that never does
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1); std::chrono::steady_clock::now() < end;) {
      if (holds()) return true;
    }
    return false;
  };
  CHECK(eventually([&] {
    int without = 0;
    for (int i = 0; i < 50; ++i) without += worker_takes_part() ? 0 : 1;
    return without > 25;
  }));
  seen.stalls = false;
  CHECK(eventually(worker_takes_part));
}

}  // namespace
}  // namespace tenon::exec
