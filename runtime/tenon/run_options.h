// SPDX-License-Identifier: Apache-2.0
// tenon/run_options.h - what a run may use of the process, and who may stop it.
#pragma once

#include <cstdint>
#include <stop_token>

namespace tenon {

/// Options of one run: of a program, of a training step, of a whole fit.
struct RunOptions {
  /// A stop request from any thread cancels the run before its next kernel: an Error with
  /// Status::cancelled, after which parameters are as before the run, results are undefined, and
  /// everything can be used further. A run that has begun to update parameters finishes. Work that
  /// an asynchronous device has in its queue is waited for.
  std::stop_token stop = {};
  /// the most threads of the host's pool, the caller's included; 0: all
  std::uint32_t threads = 0;
  /// a hint for devices whose queues have priorities: higher goes first, 0 is normal
  std::int32_t priority = 0;
};

}  // namespace tenon
