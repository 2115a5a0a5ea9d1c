// SPDX-License-Identifier: Apache-2.0
// The host's thread pool: forks, threads that cannot be started, and the affinity of its threads.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "exec/thread_pool.h"
#include "little_memory.h"
#include "log_file.h"
#include "loop_counts.h"
#include "sanitized.h"

namespace tenon::exec {
namespace {

using test::Counts;

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

#if !TENON_IS_SANITIZED
TEST_CASE("parallel_for: where the system starts too few threads, loops run on those that it has started") {
  for (const int stacks : {0, 3}) {
    CAPTURE(stacks);
    const test::LogFile log;
    const int status = test::with_room_for_stacks(stacks, [] {
      ThreadPool pool(512);
      for (int i = 0; i < 50; ++i) {
        Counts counts(2000);
        pool.parallel_for(2000, 1, Counts::body, &counts);
        if (!counts.all_once()) return 2;
      }
      return 0;
    });
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(test::count_of(log.text(), "threads: expected to start 511 threads next to the one that runs a loop, got ") == 1);
  }
}
#endif

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

}  // namespace
}  // namespace tenon::exec
