// SPDX-License-Identifier: Apache-2.0
// exec/spin.h - waiting for another thread: spinning for a limited time, then sleeping.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "platform/wait.h"

namespace tenon::exec {

using Clock = std::chrono::steady_clock;

/// Tells the processor that the thread spins.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Spins until `done` or for `limit`; whether it is done.
template <class Done>
bool spin(Clock::duration limit, const Done& done) {
  if (done()) return true;
  if (limit <= Clock::duration::zero()) return false;
  const Clock::time_point start = Clock::now();
  do {
    for (int round = 0; round < 8; ++round) {
      relax();
      if (done()) return true;
    }
  } while (Clock::now() - start < limit);
  return false;
}

/// Returns when `done`, which becomes true by a change of `atomic` that wakes those who wait on it.
template <class Done>
void wait_until(const std::atomic<std::uint32_t>& atomic, Clock::duration spin_limit, const Done& done) {
  if (spin(spin_limit, done)) return;
  for (;;) {
    const std::uint32_t seen = atomic.load(std::memory_order_acquire);
    if (done()) return;
    platform::wait(atomic, seen);
  }
}

}  // namespace tenon::exec
