#include "exec/thread_pool.h"

#include <algorithm>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace tenon::exec {
namespace {

/// Less than 200 microseconds. To wake a sleeping thread takes 40, so that it should outlast the others' last chunk and a serial kernel.
constexpr int spin_rounds = 4000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Where the calling thread runs; -1 where that is not known.
int current_processor() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

/// Moves the calling thread off that processor if it is on it and may run elsewhere. A thread that was woken is put where it slept, which
/// may be where its waker is at work: it would wait there for milliseconds beside an idle processor until the system balances loads.
void leave(int processor) {
#if defined(__linux__)
  if (processor < 0 || sched_getcpu() != processor) return;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<std::size_t>(processor), &others);
  if (CPU_COUNT(&others) == 0) return;
  sched_setaffinity(0, sizeof others, &others);    // moves it
  sched_setaffinity(0, sizeof allowed, &allowed);  // and it stays there, free to go again
#endif
}

struct Job {
  ThreadPool::Body body;
  void* argument;
  std::int64_t count, chunk, chunks;
  int processor = -1;  ///< the caller's, if it has woken somebody

  void run(std::int64_t i) const { body(argument, i * chunk, std::min(count, (i + 1) * chunk)); }
  void run_all() const {
    for (std::int64_t i = 0; i < chunks; ++i) run(i);
  }
};

/// The chunks that one thread takes first. Loops over the same data that follow one another find it in the cache of the core that had it.
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

std::uint32_t available_threads() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
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

  /// Publishes the job, works along, returns when every worker has left it.
  void run_job(Job& shared) {
    const auto share_count = static_cast<std::int64_t>(shares.size());
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
      std::this_thread::yield();  // to one that has been put on this very processor, for as long as it takes to leave
    }
    work(shared, 0);
    job.store(nullptr);
    // A worker counts itself in before it looks for the job: either it found none, or it is counted here.
    while (inside.load() != 0) relax();
  }

  /// The thread's own share, then what is left of the others.
  void work(const Job& shared, std::size_t thread) {
    for (std::size_t k = 0; k < shares.size(); ++k) {
      Share& share = shares[(thread + k) % shares.size()];
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
      if (const Job* shared = job.load()) {
        if (slept) leave(shared->processor);
        work(*shared, thread);
      }
      inside.fetch_sub(1);
    }
  }

  const std::uint32_t generation;
  std::atomic<std::uint32_t> epoch{0};
  std::vector<Share> shares;  ///< of the caller, then of each thread; written while nobody is inside
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
  // The threads of a parent process are not ours to join.
  if (workers_ != nullptr && workers_->generation != fork_generation()) static_cast<void>(workers_.release());
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, Body body, void* argument) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  // Eight chunks a thread: what is left when the first is done is little, and a chunk costs tens of nanoseconds.
  const std::int64_t wanted = static_cast<std::int64_t>(budget_) * 8;
  const std::int64_t chunk = std::max(grain, (count + wanted - 1) / wanted);
  const std::int64_t chunks = (count + chunk - 1) / chunk;
  Job job{body, argument, count, chunk, chunks};
  if (budget_ == 1 || chunks == 1 || busy_.exchange(true, std::memory_order_acquire)) {
    job.run_all();
    return;
  }
  if (workers_ != nullptr && workers_->generation != fork_generation()) static_cast<void>(workers_.release());
  if (workers_ == nullptr) workers_ = std::make_unique<Workers>(budget_ - 1);
  workers_->run_job(job);
  busy_.store(false, std::memory_order_release);
}

}  // namespace tenon::exec
