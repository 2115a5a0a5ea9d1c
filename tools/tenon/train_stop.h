// tenon/train_stop.h - Ctrl-C while a model trains: the first asks, the second kills.
#pragma once

#include <atomic>

namespace tenon::cli {

/// While it lives, the first SIGINT or SIGTERM sets flag() and gives both signals back to the system, so that another one ends the process.
/// One at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  const std::atomic<bool>* flag() const;
};

}  // namespace tenon::cli
