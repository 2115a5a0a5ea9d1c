// SPDX-License-Identifier: Apache-2.0
// cli/train_stop.h - Ctrl-C during training: the first one requests a stop, a later one ends the process.
#pragma once

#include <semaphore.h>

#include <stop_token>
#include <thread>

namespace tenon::cli {

/// During its lifetime, the first SIGINT, SIGTERM or SIGHUP requests a stop. Those of the next 2 seconds are ignored, since a key is
/// pressed twice and a closed terminal sends several; then one ends the process. Under nohup SIGHUP stays ignored. At most one instance may
/// exist at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::thread waiter_;  ///< requests the stop, which a signal handler may not do
};

}  // namespace tenon::cli
