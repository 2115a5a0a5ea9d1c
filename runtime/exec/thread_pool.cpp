// SPDX-License-Identifier: Apache-2.0
#include "exec/thread_pool.h"

#include <algorithm>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#include "exec/cpu_quota.h"

namespace tenon::exec {
namespace {

/// Less than 200 microseconds. Waking a sleeping thread takes 40, so spinning should outlast the other threads' last chunk and a serial
/// kernel.
constexpr int spin_rounds = 4000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// The processor of the calling thread; -1 if unknown.
int current_processor() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

/// Moves the calling thread off that processor if it is on it and may run elsewhere. The system may wake a thread on the processor where it
/// slept, where its waker is running now: it would wait there for milliseconds, with other processors idle, until the system balances
/// loads.
void leave(int processor) {
#if defined(__linux__)
  if (processor < 0 || sched_getcpu() != processor) return;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<std::size_t>(processor), &others);
  if (CPU_COUNT(&others) == 0) return;
  sched_setaffinity(0, sizeof others, &others);    // moves it
  sched_setaffinity(0, sizeof allowed, &allowed);  // it stays there, and may move again later
#endif
}

struct Job {
  ThreadPool::Body body;
  void* argument;
  std::int64_t count, chunk, chunks;
  std::size_t threads;  ///< that take part, the caller's included
  int processor = -1;   ///< the caller's, if it has woken a worker

  void run(std::int64_t i) const { body(argument, i * chunk, std::min(count, (i + 1) * chunk)); }
  void run_all() const {
    for (std::int64_t i = 0; i < chunks; ++i) run(i);
  }
};

/// The chunks that a thread processes first, so that consecutive loops over the same data find it in the same core's cache.
struct alignas(64) Share {
  std::atomic<std::int64_t> next{0};
  std::int64_t end = 0;
};

std::atomic<std::uint32_t> forks{0};

}  // namespace

std::uint32_t fork_generation() {
#if defined(__linux__)
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  static_cast<void>(registered);
#endif
  return forks.load(std::memory_order_relaxed);
}

std::uint32_t affinity_threads() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

std::uint32_t available_threads() {
  const std::optional<double> quota = cpu_quota();
  return quota ? std::min(affinity_threads(), threads_of_quota(*quota)) : affinity_threads();
}

struct ThreadPool::Workers {
  explicit Workers(std::uint32_t count) : generation(fork_generation()), shares(count + 1) {
    threads.reserve(count);
    for (std::uint32_t i = 1; i <= count; ++i) threads.emplace_back([this, i] { run(i); });
  }
  ~Workers() {
    stop.store(true);
    epoch.fetch_add(1);
    epoch.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  /// Publishes the job, takes part in it, and returns when all workers have finished it.
  void run_job(Job& shared) {
    const auto share_count = static_cast<std::int64_t>(shared.threads);
    for (std::int64_t i = 0; i < share_count; ++i) {
      Share& share = shares[static_cast<std::size_t>(i)];
      share.next.store(i * shared.chunks / share_count, std::memory_order_relaxed);
      share.end = (i + 1) * shared.chunks / share_count;
    }
    const bool some_sleep = sleeping.load() > 0;
    if (some_sleep) shared.processor = current_processor();
    job.store(&shared);
    epoch.fetch_add(1);
    if (some_sleep || sleeping.load() > 0) {
      epoch.notify_all();
      std::this_thread::yield();  // lets a worker that was woken on this processor move away
    }
    work(shared, 0);
    job.store(nullptr);
    // A worker increments the count before it reads the job: either it found none, or it is counted here.
    while (inside.load() != 0) relax();
  }

  /// Processes the thread's own share, then steals from the others.
  void work(const Job& shared, std::size_t thread) {
    for (std::size_t k = 0; k < shared.threads; ++k) {
      Share& share = shares[(thread + k) % shared.threads];
      for (std::int64_t i; (i = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) shared.run(i);
    }
  }

  void run(std::size_t thread) {
    std::uint32_t seen = 0;
    for (;;) {
      int round = 0;
      bool slept = false;
      while (epoch.load(std::memory_order_acquire) == seen) {
        if (++round < spin_rounds) {
          relax();
          continue;
        }
        sleeping.fetch_add(1);
        epoch.wait(seen);
        sleeping.fetch_sub(1);
        slept = true;
      }
      seen = epoch.load();
      if (stop.load()) return;
      inside.fetch_add(1);
      if (const Job* shared = job.load(); shared != nullptr && thread < shared->threads) {
        if (slept) leave(shared->processor);
        work(*shared, thread);
      }
      inside.fetch_sub(1);
    }
  }

  const std::uint32_t generation;
  std::atomic<std::uint32_t> epoch{0};
  std::vector<Share> shares;  ///< the caller's, then one per worker; written while no worker is active
  std::atomic<const Job*> job{nullptr};
  std::atomic<int> inside{0};
  std::atomic<int> sleeping{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
};

ThreadPool::ThreadPool(std::uint32_t budget) : budget_(std::max(1u, budget)) {
  fork_generation();
}

ThreadPool::~ThreadPool() {
  // The threads of a parent process cannot be joined.
  if (workers_ != nullptr && workers_->generation != fork_generation()) static_cast<void>(workers_.release());
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, Body body, void* argument, std::uint32_t threads) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  // Eight chunks per thread limit the imbalance at the end; a chunk costs tens of nanoseconds.
  threads = std::min(threads, budget_);
  const std::int64_t target = static_cast<std::int64_t>(threads) * 8;
  const std::int64_t chunk = std::max(grain, (count + target - 1) / target);
  const std::int64_t chunks = (count + chunk - 1) / chunk;
  Job job{body, argument, count, chunk, chunks, threads};
  if (threads == 1 || chunks == 1 || busy_.exchange(true, std::memory_order_acquire)) {
    job.run_all();
    return;
  }
  if (workers_ != nullptr && workers_->generation != fork_generation()) static_cast<void>(workers_.release());
  if (workers_ == nullptr) workers_ = std::make_unique<Workers>(budget_ - 1);
  workers_->run_job(job);
  busy_.store(false, std::memory_order_release);
}

}  // namespace tenon::exec
