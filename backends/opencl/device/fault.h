// SPDX-License-Identifier: Apache-2.0
// fault.h - reports invalid operands found by a kernel to the host code that waits for the work.
//
// A kernel cannot throw. It writes a record to a buffer of its stream; the first fault stays. Whoever marks a point in the stream has the
// record read there, into memory that is examined when the point has been reached.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tenon/sdk/fault.h>

#include "libraries/opencl.h"

namespace tenon::opencl {

using sdk::FaultRecord;  // as kernel/common.cl declares it

/// The record as of one point of a stream, valid once that point has been reached.
struct FaultReading {
  FaultRecord record{};
  std::atomic<bool> examined{false};

  /// Throws the fault, if there is one and nobody has reported it yet.
  void report();
};
using FaultReadings = std::vector<std::shared_ptr<FaultReading>>;

/// The record of one stream.
///
/// Threads  record_for_kernel: with the device's `submission` held, until the kernel has been submitted; read: any, without it
class Faults {
 public:
  Faults(cl_context context, cl_command_queue queue, std::mutex& submission);
  ~Faults();

  /// The buffer, for a kernel that may fault and is about to be submitted.
  cl_mem record_for_kernel() {
    dirty_ = true;
    return record_;
  }
  /// Enqueues a reading of the record if a kernel may have written it. Returns all readings that nobody has examined yet.
  FaultReadings read();

 private:
  cl_command_queue queue_;
  std::mutex& submission_;  ///< guards the rest: no kernel is between its announcement and its submission
  cl_mem record_ = nullptr;
  bool dirty_ = false;
  FaultReadings pending_;
};

}  // namespace tenon::opencl
