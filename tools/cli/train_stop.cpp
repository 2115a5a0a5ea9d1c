// SPDX-License-Identifier: Apache-2.0
#include "cli/train_stop.h"

#include <csignal>

namespace tenon::cli {
namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only use lock-free atomics");

void restore_default_handlers() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

extern "C" void on_signal(int) {
  stop_requested.store(true, std::memory_order_relaxed);
  restore_default_handlers();
}

}  // namespace

StopOnSignal::StopOnSignal() {
  stop_requested.store(false, std::memory_order_relaxed);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}
StopOnSignal::~StopOnSignal() {
  restore_default_handlers();
}
const std::atomic<bool>* StopOnSignal::flag() const {
  return &stop_requested;
}

}  // namespace tenon::cli
