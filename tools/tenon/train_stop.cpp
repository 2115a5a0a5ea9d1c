#include "tenon/train_stop.h"

#include <csignal>

namespace tenon::cli {
namespace {

std::atomic<bool> asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch what needs no lock");

void give_back() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

extern "C" void on_signal(int) {
  asked.store(true, std::memory_order_relaxed);
  give_back();
}

}  // namespace

StopOnSignal::StopOnSignal() {
  asked.store(false, std::memory_order_relaxed);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}
StopOnSignal::~StopOnSignal() {
  give_back();
}
const std::atomic<bool>* StopOnSignal::flag() const {
  return &asked;
}

}  // namespace tenon::cli
