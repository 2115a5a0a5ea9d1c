// SPDX-License-Identifier: Apache-2.0
#include "platform/stop_requests.h"

#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <thread>

namespace tenon::platform {
namespace {

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};

StopRequests::Answer (*answer)() noexcept = nullptr;
std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only use lock-free atomics");
sem_t wake;  ///< posted by the first signal that stops, and at the end

extern "C" void on_signal(int signal) {
  const int saved_errno = errno;
  switch (answer()) {
    case StopRequests::Answer::stop:
      if (!stop.exchange(true)) sem_post(&wake);
      break;
    case StopRequests::Answer::ignore:
      break;
    case StopRequests::Answer::end:
      std::signal(signal, SIG_DFL);
      std::raise(signal);
      break;
  }
  errno = saved_errno;
}

}  // namespace

struct StopRequests::State {
  struct sigaction before[std::size(signals)];
  std::thread waiter;  ///< calls on_stop, which a signal handler may not do
};

StopRequests::StopRequests(Answer (*on_request)() noexcept, std::function<void()> on_stop) : state_(std::make_unique<State>()) {
  answer = on_request;
  stop.store(false);
  sem_init(&wake, 0, 0);
  state_->waiter = std::thread([call = std::move(on_stop)] {
    while (sem_wait(&wake) != 0) continue;  // interrupted by a signal
    if (stop.load()) call();
  });
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    sigaction(signals[i], nullptr, &state_->before[i]);
    if (signals[i] == SIGHUP && state_->before[i].sa_handler == SIG_IGN) continue;  // run by nohup
    sigaction(signals[i], &action, nullptr);
  }
}

StopRequests::~StopRequests() {
  for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &state_->before[i], nullptr);
  sem_post(&wake);
  state_->waiter.join();
  sem_destroy(&wake);
}

}  // namespace tenon::platform
