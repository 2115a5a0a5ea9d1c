// SPDX-License-Identifier: Apache-2.0
// The host's thread pool: every index once, nested and concurrent loops, workers that stall, forks.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "exec/thread_pool.h"

namespace tenon::exec {
namespace {

struct Counts {
  std::vector<std::atomic<int>> seen;
  explicit Counts(std::size_t n) : seen(n) {}
  static void body(void* argument, std::int64_t begin, std::int64_t end) {
    auto& counts = *static_cast<Counts*>(argument);
    for (std::int64_t i = begin; i < end; ++i) counts.seen[static_cast<std::size_t>(i)].fetch_add(1);
  }
  bool all_once() const {
    for (const auto& n : seen) {
      if (n.load() != 1) return false;
    }
    return true;
  }
};

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

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TENON_THREADS_END_AT_FORK  // ThreadSanitizer ends a child of a threaded process that starts threads
#endif
#elif defined(__SANITIZE_THREAD__)
#define TENON_THREADS_END_AT_FORK
#endif

#ifndef TENON_THREADS_END_AT_FORK
TEST_CASE("fork: a child process gets its own workers") {
  ThreadPool pool(2);
  Counts before(100);
  pool.parallel_for(100, 1, Counts::body, &before);
  const pid_t child = fork();
  if (child == 0) {
    Counts counts(100);
    pool.parallel_for(100, 1, Counts::body, &counts);
    _exit(counts.all_once() && fork_generation() == 1 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("fork: a child of a process whose threads run loops gets its own workers") {
  ThreadPool pool(3);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      Counts counts(30);
      while (!stop) pool.parallel_for(30, 1, Counts::body, &counts);
    });
  }
  int good = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      bool once = true;
      for (int k = 0; k < 20; ++k) {
        Counts counts(100);
        pool.parallel_for(100, 1, Counts::body, &counts);
        once = once && counts.all_once();
      }
      _exit(once ? 0 : 1);
    }
    int status = -1;
    if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0) ++good;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(good == 20);
}
#endif

#if defined(__linux__)
TEST_CASE("parallel_for: a thread that wakes on its caller's CPU moves away, and its affinity is unchanged") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  ThreadPool pool(4);
  struct Seen {
    cpu_set_t before;
    std::atomic<int> changed{0}, chunks{0};
  } seen{before};
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the threads are asleep by then
    pool.parallel_for(
        64, 1,
        [](void* argument, std::int64_t, std::int64_t) {
          auto* all = static_cast<Seen*>(argument);
          cpu_set_t mine;
          if (sched_getaffinity(0, sizeof mine, &mine) != 0 || !CPU_EQUAL(&mine, &all->before)) all->changed.fetch_add(1);
          all->chunks.fetch_add(1);
        },
        &seen);
  }
  CHECK(seen.changed == 0);
  CHECK(seen.chunks > 0);
}
#endif

}  // namespace
}  // namespace tenon::exec
