// SPDX-License-Identifier: Apache-2.0
#include "exec/thread_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "core/log.h"
#include "exec/cpu_quota.h"
#include "exec/spin.h"
#include "exec/worker_pause.h"
#include "platform/fork.h"
#include "platform/processors.h"
#include "platform/wait.h"

namespace tenon::exec {
namespace {

/// The ends of a share's chunks in 32nds of the share. They shrink towards the end, where threads that have finished wait for the others;
/// a chunk costs tens of nanoseconds.
constexpr std::array<std::int64_t, 10> chunk_ends = {0, 8, 14, 19, 23, 26, 28, 30, 31, 32};
constexpr std::int64_t chunks_per_share = chunk_ends.size() - 1;

/// A loop, and how it is split: one share per thread, and chunks of whole grains in each.
struct Job {
  Job() = default;
  Job(std::int64_t n, std::int64_t smallest, ThreadPool::Body function, void* its_argument, std::uint32_t max_threads)
      : body(function), argument(its_argument), count(n), grain(smallest) {
    const std::int64_t grains = (count - 1) / grain + 1;
    threads = std::min<std::int64_t>(grains, max_threads);
    grains_per_share = grains / threads;
    longer_shares = grains % threads;
  }

  /// Grains before this share; the first `longer_shares` have one more than the others.
  std::int64_t share_begin(std::int64_t share) const { return grains_per_share * share + std::min(share, longer_shares); }
  std::int64_t grains() const { return share_begin(threads); }
  /// Returns how many grains the chunk has.
  std::int64_t run(std::int64_t share, std::int64_t chunk) const {
    const std::int64_t before = share_begin(share), length = share_begin(share + 1) - before;
    const auto grains_until = [&](std::int64_t part) { return before + length / 32 * part + length % 32 * part / 32; };
    const std::int64_t begin = grains_until(chunk_ends[static_cast<std::size_t>(chunk)]);
    const std::int64_t end = grains_until(chunk_ends[static_cast<std::size_t>(chunk + 1)]);
    if (begin < end) body(argument, begin * grain, end < grains() ? end * grain : count);
    return end - begin;
  }
  void run_all() const {
    for (std::int64_t share = 0; share < threads; ++share) {
      for (std::int64_t chunk = 0; chunk < chunks_per_share; ++chunk) run(share, chunk);
    }
  }

  ThreadPool::Body body = nullptr;
  void* argument = nullptr;
  std::int64_t count = 0, grain = 1;
  std::int64_t threads = 1;  ///< that take part at most, the caller's included
  std::int64_t grains_per_share = 0, longer_shares = 0;
};

/// The chunks that a thread processes first, so that consecutive loops over the same data find it in the same core's cache.
struct alignas(64) Share {
  std::atomic<std::int64_t> next{0};
};

/// A job that workers may join. Its fields are written by its caller while no worker is inside.
struct alignas(64) Slot {
  Job job;
  int processor = -1;         ///< the caller's, if it has woken a worker
  std::vector<Share> shares;  ///< one per thread of the pool

  alignas(64) std::atomic<bool> taken{false};      ///< by a caller
  std::atomic<std::int32_t> inside{0};             ///< workers that read the fields, or are about to find that they must not
  std::atomic<std::int32_t> joined{0};             ///< threads that have taken part, the caller's included
  alignas(64) std::atomic<std::uint32_t> left{0};  ///< chunks that are not finished
};

/// The pool whose chunk the thread runs; null outside of loops.
thread_local const void* pool_of_chunk = nullptr;

/// Marks the thread as one that runs chunks of this pool.
class InsideLoop {
 public:
  explicit InsideLoop(const void* pool) : before_(pool_of_chunk) { pool_of_chunk = pool; }
  ~InsideLoop() { pool_of_chunk = before_; }
  InsideLoop(const InsideLoop&) = delete;
  InsideLoop& operator=(const InsideLoop&) = delete;

 private:
  const void* before_;
};

/// How long an idle worker spins. Waits that spinning does not shorten make it shorter, so that the worker leaves its CPU to others; a job
/// that spinning would have met sets it back to the full limit.
class IdleSpin {
 public:
  explicit IdleSpin(Clock::duration full) : full_(full), limit_(full) {}
  Clock::duration limit() const { return limit_; }
  /// Counts a wait of this length.
  void count(Clock::duration waited) {
    if (waited < full_) {
      limit_ = full_;
      long_waits_ = 0;
    } else if (++long_waits_ > 2) {
      limit_ = limit_ / 2 > full_ / 16 ? limit_ / 2 : full_ / 16;
    }
  }

 private:
  Clock::duration full_, limit_;
  int long_waits_ = 0;  ///< in a row
};

std::atomic<std::uint32_t> forks{0};

}  // namespace

std::uint32_t fork_generation() {
  static const bool registered = (platform::on_fork(nullptr, nullptr, [] { forks.fetch_add(1); }), true);
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

std::uint32_t affinity_threads() {
  return platform::usable_processors();
}

std::uint32_t available_threads() {
  const std::optional<double> quota = cpu_quota();
  return quota ? std::min(affinity_threads(), threads_of_quota(*quota)) : affinity_threads();
}

struct ThreadPool::Workers {
  Workers(const ThreadPool* owner, std::uint32_t max_threads, std::uint32_t spin_us)
      : pool(owner),
        generation(fork_generation()),
        budget(static_cast<std::int32_t>(max_threads)),
        spin_limit(std::chrono::microseconds(spin_us)) {
    for (Slot& slot : slots) slot.shares = std::vector<Share>(max_threads);
    threads.reserve(max_threads - 1);
    try {
      for (std::uint32_t i = 1; i < max_threads; ++i) threads.emplace_back([this, i] { run(i); });
    } catch (const std::system_error& error) {
      problem = error.code();
    } catch (const std::bad_alloc&) {
      problem = std::make_error_code(std::errc::not_enough_memory);
    }
  }
  ~Workers() {
    stop.store(true);
    epoch.fetch_add(1);
    platform::wake_all(epoch);
    for (std::thread& thread : threads) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Publishes the job, takes part in it, and returns when all chunks are finished; false, and nothing has run, if too many loops run or
  /// workers pause.
  bool run_job(const Job& job) {
    const Clock::time_point published = Clock::now();
    if (pause.holds(published)) return false;
    const std::uint32_t index = take_slot();
    if (index == slots.size()) return false;
    Slot& slot = slots[index];
    slot.job = job;
    slot.processor = -1;
    for (std::int64_t i = 0; i < job.threads; ++i) slot.shares[static_cast<std::size_t>(i)].next.store(0, std::memory_order_relaxed);
    slot.joined.store(1, std::memory_order_relaxed);
    slot.left.store(static_cast<std::uint32_t>(job.threads * chunks_per_share), std::memory_order_relaxed);
    const bool some_sleep = sleeping.load() > 0;
    if (some_sleep) slot.processor = platform::current_processor();
    open.fetch_or(1u << index);
    epoch.fetch_add(1);
    Clock::time_point start = published;
    if (some_sleep || sleeping.load() > 0) {
      platform::wake_all(epoch);
      std::this_thread::yield();  // lets a worker that was woken on this processor move away
      start = Clock::now();
    }
    const std::int64_t grains = work(slot, 0);
    open.fetch_and(~(1u << index));
    wait_for_chunks(slot, start, start - published, grains);
    slot.taken.store(false, std::memory_order_release);
    return true;
  }

  /// A slot with no caller and no worker inside; slots.size() if there is none.
  std::uint32_t take_slot() {
    for (std::uint32_t i = 0; i < slots.size(); ++i) {
      Slot& slot = slots[i];
      if (slot.taken.load(std::memory_order_relaxed) || slot.taken.exchange(true)) continue;
      // A worker that comes in after this finds the slot closed and leaves it, or finds the next job in it. One that was preempted inside
      // keeps the slot of a finished job; the caller takes another instead of waiting.
      if (slot.inside.load() == 0) return i;
      slot.taken.store(false, std::memory_order_release);
    }
    return static_cast<std::uint32_t>(slots.size());
  }

  /// Waits for the chunks that workers have begun. Those at the end of a share are short: a wait beyond the limit means that a worker has
  /// lost its CPU, perhaps to the spinning caller. `start` is when this thread began to compute, `waking` how long it had taken before to
  /// wake workers and to get its CPU back, which a woken worker may take at once or when this thread yields; `grains` is what it computed.
  void wait_for_chunks(Slot& slot, Clock::time_point start, Clock::duration waking, std::int64_t grains) {
    const auto finished = [&] { return slot.left.load(std::memory_order_acquire) == 0; };
    const bool stalled = waking >= WorkerPause::shortest_stall && grains > 0;
    if (!stalled && finished()) return;
    const Clock::time_point computed = Clock::now();
    if (spin(spin_limit, finished) && !stalled) return;
    for (std::uint32_t left; (left = slot.left.load(std::memory_order_acquire)) != 0;) platform::wait(slot.left, left);
    const Clock::time_point end = Clock::now();
    pause.count(computed - start, grains, slot.job.grains(), waking + (end - computed), end);
  }

  /// Processes the share of the thread with this index, then steals from the others. Returns how many grains it has processed.
  std::int64_t work(Slot& slot, std::int64_t thread) const {
    const InsideLoop inside_loop(pool);
    const Job& job = slot.job;
    std::int64_t grains = 0;
    for (std::int64_t k = 0; k < job.threads; ++k) {
      const std::int64_t share = (thread + k) % job.threads;
      std::atomic<std::int64_t>& next = slot.shares[static_cast<std::size_t>(share)].next;
      std::uint32_t finished = 0;
      while (next.load(std::memory_order_relaxed) < chunks_per_share) {
        const std::int64_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= chunks_per_share) break;
        grains += job.run(share, i);
        ++finished;
      }
      if (finished > 0 && slot.left.fetch_sub(finished, std::memory_order_acq_rel) == finished && thread > 0) platform::wake_one(slot.left);
    }
    return grains;
  }

  /// Takes part in the open job with the fewest threads, if there is one that may have one more.
  void join(std::int64_t thread, bool slept) {
    const std::uint32_t jobs = open.load();
    if (jobs == 0) return;
    if (active.fetch_add(1) + std::popcount(jobs) < budget) {
      if (Slot* const slot = enter(jobs)) {
        if (slept) platform::leave_processor(slot->processor);
        work(*slot, thread);
        slot->inside.fetch_sub(1);
      }
    }
    active.fetch_sub(1);
  }

  /// Counts this worker in at the job of these with the fewest threads; null if it is over or has all its threads.
  Slot* enter(std::uint32_t jobs) {
    auto best = static_cast<std::uint32_t>(std::countr_zero(jobs));
    for (std::uint32_t rest = jobs & (jobs - 1); rest != 0; rest &= rest - 1) {
      const auto i = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (slots[i].joined.load(std::memory_order_relaxed) < slots[best].joined.load(std::memory_order_relaxed)) best = i;
    }
    Slot& slot = slots[best];
    slot.inside.fetch_add(1);
    // The count comes before the check: either the caller sees the worker inside and leaves the fields alone, or the worker sees the slot
    // closed.
    if ((open.load() >> best & 1) != 0 && slot.joined.fetch_add(1) < slot.job.threads) return &slot;
    slot.inside.fetch_sub(1);
    return nullptr;
  }

  void run(std::int64_t thread) {
    std::uint32_t seen = 0;
    IdleSpin idle(spin_limit);
    for (;;) {
      const auto published = [&] { return epoch.load(std::memory_order_acquire) != seen; };
      bool slept = false;
      const Clock::time_point start = Clock::now();
      if (spin(idle.limit(), published)) {
        idle.count(Clock::duration::zero());
      } else {
        sleeping.fetch_add(1);
        platform::wait(epoch, seen);
        sleeping.fetch_sub(1);
        slept = true;
        idle.count(Clock::now() - start);
      }
      seen = epoch.load();
      if (stop.load()) return;
      join(thread, slept);
    }
  }

  const ThreadPool* const pool;
  const std::uint32_t generation;
  const std::int32_t budget;
  const Clock::duration spin_limit;
  alignas(64) std::atomic<std::uint32_t> epoch{0};  ///< counts published jobs
  std::atomic<std::uint32_t> open{0};               ///< bit i: workers may join slot i
  std::atomic<int> sleeping{0};
  std::atomic<bool> stop{false};
  alignas(64) std::atomic<std::int32_t> active{0};  ///< workers that compute, or look for a job to join; callers do not read it
  alignas(64) WorkerPause pause;
  std::array<Slot, 16> slots;
  std::vector<std::thread> threads;
  std::error_code problem;  ///< why there are fewer threads than the budget allows: the others take over their shares
};

ThreadPool::ThreadPool(std::uint32_t budget, std::uint32_t spin_us) : budget_(std::max(1u, budget)), spin_us_(spin_us) {
  fork_generation();
}

ThreadPool::~ThreadPool() {
  // The threads of a parent process cannot be joined.
  Workers* const last = workers_.load();
  if (last != nullptr && last->generation == fork_generation()) delete last;
}

ThreadPool::Workers* ThreadPool::workers() {
  Workers* last = workers_.load(std::memory_order_acquire);
  if (last != nullptr && last->generation == fork_generation()) return last;
  if (starting_.exchange(true)) return nullptr;
  struct Started {
    std::atomic<bool>& starting;
    ~Started() { starting.store(false, std::memory_order_release); }
  } const started{starting_};
  last = workers_.load(std::memory_order_acquire);
  if (last != nullptr && last->generation == fork_generation()) return last;
  // Kernels in C call parallel_for, so no exception may leave it.
  try {
    last = new Workers(this, budget_, spin_us_);  // those of a parent process are left alone
  } catch (...) {
    return nullptr;  // the loop runs on its caller, and the next one tries again
  }
  workers_.store(last, std::memory_order_release);
  try {
    if (last->problem) {
      log::warning(
          "threads: expected to start {} threads next to the one that runs a loop, got {}: {}; loops run on {}. Fewer `threads` in the "
          "configuration, or a higher limit of the process's memory or threads, avoids this",
          budget_ - 1, last->threads.size(), last->problem.message(), last->threads.size() + 1);
    }
  } catch (...) {  // there is no memory for the line
  }
  return last;
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, Body body, void* argument, std::uint32_t threads) {
  if (count <= 0) return;
  const Job job(count, std::max<std::int64_t>(grain, 1), body, argument, std::clamp(threads, 1u, budget_));
  if (job.threads > 1 && pool_of_chunk != this) {
    if (Workers* const others = workers(); others != nullptr && others->run_job(job)) return;
  }
  job.run_all();
}

}  // namespace tenon::exec
