// SPDX-License-Identifier: Apache-2.0
#include "cli/train_stop.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace tenon::cli {
namespace {

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr std::int64_t patience_s = 2;

std::atomic<bool> stop_requested{false};
std::atomic<std::int64_t> requested_at_s{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler may only use lock-free atomics");

std::int64_t now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // may be called in a signal handler, as write may
  return now.tv_sec;
}

struct sigaction before[std::size(signals)];
sem_t wake;  ///< posted by the first signal, and at the end

extern "C" void on_signal(int signal) {
  const int saved_errno = errno;
  if (!stop_requested.exchange(true)) {
    requested_at_s.store(now_s());
    constexpr std::string_view text =
        "\nStopping, and saving the state after the last complete step. A signal after more than 2 seconds ends the process at once.\n";
    static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
    sem_post(&wake);
  } else if (now_s() - requested_at_s.load() > patience_s) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  errno = saved_errno;
}

}  // namespace

StopOnSignal::StopOnSignal() {
  stop_requested.store(false);
  sem_init(&wake, 0, 0);
  waiter_ = std::thread([this] {
    while (sem_wait(&wake) != 0) continue;  // interrupted by a signal
    if (stop_requested.load()) source_.request_stop();
  });
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    sigaction(signals[i], nullptr, &before[i]);
    if (signals[i] == SIGHUP && before[i].sa_handler == SIG_IGN) continue;  // run by nohup
    sigaction(signals[i], &action, nullptr);
  }
}
StopOnSignal::~StopOnSignal() {
  for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &before[i], nullptr);
  sem_post(&wake);
  waiter_.join();
  sem_destroy(&wake);
}

}  // namespace tenon::cli
