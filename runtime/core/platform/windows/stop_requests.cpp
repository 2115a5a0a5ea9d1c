// SPDX-License-Identifier: Apache-2.0
#include "platform/stop_requests.h"

#include <windows.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace tenon::platform {

struct StopRequests::State {
  Answer (*answer)() noexcept = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false, over = false;
  std::thread waiter;  ///< calls on_stop

  static inline std::mutex current_mutex;
  static inline State* current = nullptr;
  /// The system calls this on a thread that it makes.
  static BOOL WINAPI on_event(DWORD event);
};

BOOL WINAPI StopRequests::State::on_event(DWORD event) {
  {
    const std::lock_guard lock(current_mutex);
    if (current == nullptr) return FALSE;
    switch (current->answer()) {
      case Answer::stop: {
        const std::lock_guard own(current->mutex);
        current->stop = true;
        current->changed.notify_one();
        break;
      }
      case Answer::ignore:
        break;
      case Answer::end:
        return FALSE;  // the next handler is the system's, which ends the process
    }
  }
  // After these the system ends the process when the handler returns, or after some seconds: the program uses them to save its state.
  if (event == CTRL_CLOSE_EVENT || event == CTRL_LOGOFF_EVENT || event == CTRL_SHUTDOWN_EVENT) Sleep(INFINITE);
  return TRUE;
}

StopRequests::StopRequests(Answer (*on_request)() noexcept, std::function<void()> on_stop) : state_(std::make_unique<State>()) {
  state_->answer = on_request;
  state_->waiter = std::thread([state = state_.get(), call = std::move(on_stop)] {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->stop || state->over; });
    const bool stop = state->stop;
    lock.unlock();
    if (stop) call();
  });
  {
    const std::lock_guard lock(State::current_mutex);
    State::current = state_.get();
  }
  SetConsoleCtrlHandler(State::on_event, TRUE);
}

StopRequests::~StopRequests() {
  SetConsoleCtrlHandler(State::on_event, FALSE);
  {
    const std::lock_guard lock(State::current_mutex);
    State::current = nullptr;
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->over = true;
  }
  state_->changed.notify_one();
  state_->waiter.join();
}

}  // namespace tenon::platform
