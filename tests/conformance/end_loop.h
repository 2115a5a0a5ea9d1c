// SPDX-License-Identifier: Apache-2.0
// end_loop.h - ends the loop of another thread at the end of a scope, also if that ends by an exception: a future that std::async made
// waits for its thread when it is destroyed.
#pragma once

#include <atomic>

namespace tenon::conformance {

/// Sets the condition of the loop to false. Declare it after the future of the thread.
class EndLoop {
 public:
  explicit EndLoop(std::atomic<bool>& goes_on) : goes_on_(goes_on) {}
  ~EndLoop() { goes_on_ = false; }
  EndLoop(const EndLoop&) = delete;
  EndLoop& operator=(const EndLoop&) = delete;

 private:
  std::atomic<bool>& goes_on_;
};

}  // namespace tenon::conformance
