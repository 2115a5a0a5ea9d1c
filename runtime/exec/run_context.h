// SPDX-License-Identifier: Apache-2.0
// exec/run_context.h - RunOptions as backends get them.
#pragma once

#include <cstdint>
#include <stop_token>

#include <tenon/backend.h>
#include <tenon/error.h>
#include <tenon/run_options.h>

/// The host's part of a tenon_run.
struct tenon_host_run {
  std::stop_token stop;
};

namespace tenon::exec {

/// One run. Its tenon_run points to it and lives as long.
class RunContext {
 public:
  explicit RunContext(const RunOptions& options)
      : host_{options.stop}, run_{sizeof run_, options.threads, options.priority, 0, options.stop.stop_possible() ? &host_ : nullptr} {}
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  bool cancelled() const { return host_.stop.stop_requested(); }
  /// From here on the run is not cancelled any more.
  void finish() { run_.context = nullptr; }
  bool finishes() const { return run_.context == nullptr; }
  /// NULL if it is all defaults.
  const tenon_run* get() const { return run_.context == nullptr && run_.threads == 0 && run_.priority == 0 ? nullptr : &run_; }

 private:
  tenon_host_run host_;
  tenon_run run_;
};

}  // namespace tenon::exec
