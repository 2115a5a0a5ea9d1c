// SPDX-License-Identifier: Apache-2.0
// profile.h - the events around the kernels of a plan's profiled executions, which an execution id names.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tenon/backend.h>
#include <tenon/sdk/device.h>

namespace tenon::sdk {

/// The events of one execution, or of one recording and its last replay.
struct Timing {
  std::vector<std::unique_ptr<Event>> marks;  ///< before the first kernel, and after each
  std::atomic<std::uint64_t> execution{0};    ///< its id; of a recording, that of the last replay
};

/// The timings of one plan.
/// Threads  every member may be called from any thread.
class Profile {
 public:
  /// Executions whose timings are kept; recordings keep their own.
  static constexpr std::uint32_t kept = 4;

  /// Events for one execution of so many kernels. Those of the oldest execution are used again.
  std::shared_ptr<Timing> begin(Device& device, std::size_t kernels);
  /// Called when all events have been submitted to the stream; if it is being recorded, its recording keeps the timing.
  void end(std::shared_ptr<Timing> timing, std::uint64_t execution_id, tenon_stream& stream);
  /// Throws INVALID_ARGUMENT for an id that is not kept.
  std::shared_ptr<const Timing> find(std::uint64_t execution_id);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Timing>> executions_;  ///< oldest first
  std::vector<std::weak_ptr<Timing>> recordings_;
};

}  // namespace tenon::sdk
