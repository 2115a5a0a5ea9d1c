// SPDX-License-Identifier: Apache-2.0
// exec/worker_pause.h - when the loops of a thread pool do without workers.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "exec/spin.h"

namespace tenon::exec {

/// When loops do without workers. Where other programs compute, the system takes a worker's CPU for milliseconds, and a short loop waits
/// for the chunk that the worker has begun; or the caller, which lets a woken worker move away, gets its CPU back only after the others'
/// time slices. Without workers the loop would have been over long before. So stalls that are longer than the caller would have taken for
/// the whole loop, and follow each other closely, pause the workers for a multiple of their length, which grows while it does not help. A
/// single one pauses nothing, nor does one of a loop that workers did alone: what it would have taken is unknown.
/// Threads  any.
class WorkerPause {
 public:
  /// A worker that keeps its CPU finishes the last chunks of most loops, which are short, in less; the system's time slices are longer.
  static constexpr Clock::duration shortest_stall = std::chrono::microseconds(500);

  bool holds(Clock::time_point now) const { return now.time_since_epoch().count() < until_.load(std::memory_order_relaxed); }
  /// Counts a loop whose caller took the time `computed` for `grains` of all `total`, was kept from computing or from returning for the
  /// time `stall`, and ended at `end`.
  void count(Clock::duration computed, std::int64_t grains, std::int64_t total, Clock::duration stall, Clock::time_point end) {
    if (stall < shortest_stall || grains == 0) return;
    using Nanoseconds = std::chrono::duration<double, std::nano>;
    if (Nanoseconds(stall) < Nanoseconds(computed) * (static_cast<double>(total) / static_cast<double>(grains))) return;
    const std::int64_t multiple = multiple_.load(std::memory_order_relaxed);
    const Clock::time_point last{Clock::duration(until_.load(std::memory_order_relaxed))};
    const bool paused_before = multiple > min_multiple;
    const bool repeated = end - stall - last < stall * (paused_before ? 8 : 3);
    multiple_.store(repeated ? std::min(multiple * 2, max_multiple) : min_multiple, std::memory_order_relaxed);
    const Clock::time_point until = repeated ? end + std::min<Clock::duration>(stall * multiple, longest) : end;
    until_.store(until.time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t min_multiple = 4, max_multiple = 64;  // of the time, stalls take 1/5 at first and 1/65 if they continue
  static constexpr Clock::duration longest = std::chrono::seconds(1);
  std::atomic<Clock::rep> until_{0};  ///< the end of the last pause, or of the last stall that caused none
  std::atomic<std::int64_t> multiple_{min_multiple};
};

}  // namespace tenon::exec
