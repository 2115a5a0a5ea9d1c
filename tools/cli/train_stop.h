// SPDX-License-Identifier: Apache-2.0
// cli/train_stop.h - Ctrl-C during training: the first one requests a stop, a later one ends the process.
#pragma once

#include <atomic>

namespace tenon::cli {

/// During its lifetime, the first SIGINT, SIGTERM or SIGHUP sets flag(). Those of the next 2 seconds are ignored, since a key is pressed
/// twice and a closed terminal sends several; then one ends the process. Under nohup SIGHUP stays ignored. At most one instance may exist
/// at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  const std::atomic<bool>* flag() const;
};

}  // namespace tenon::cli
