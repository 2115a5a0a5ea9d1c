// SPDX-License-Identifier: Apache-2.0
// cli/train_stop.h - Ctrl-C during training: the first one requests a stop, the second one ends the process.
#pragma once

#include <atomic>

namespace tenon::cli {

/// During its lifetime, the first SIGINT or SIGTERM sets flag() and restores the default handlers, so that the next signal ends the
/// process. At most one instance may exist at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  const std::atomic<bool>* flag() const;
};

}  // namespace tenon::cli
