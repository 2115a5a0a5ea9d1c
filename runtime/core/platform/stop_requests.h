// SPDX-License-Identifier: Apache-2.0
// platform/stop_requests.h - Ctrl-C and what else asks a program to end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace tenon::platform {

/// During its lifetime, SIGINT, SIGTERM and SIGHUP do not end the process by themselves; on Windows Ctrl-C, Ctrl-Break, the closing of the
/// console, and the end of the session. SIGHUP stays ignored under nohup. At most one instance may exist at a time.
class StopRequests {
 public:
  enum class Answer : std::uint8_t {
    stop,    ///< `on_stop` is called
    ignore,  ///< nothing happens
    end,     ///< the process ends at once, as it would without this object
  };
  /// `on_request` answers each request, in a handler of a signal: it may use lock-free atomics, write_to_standard_error and clocks.
  /// `on_stop` is called on a thread of its own, at most once.
  StopRequests(Answer (*on_request)() noexcept, std::function<void()> on_stop);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::platform
