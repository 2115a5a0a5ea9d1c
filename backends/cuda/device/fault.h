// SPDX-License-Identifier: Apache-2.0
// fault.h - reports invalid operands found by a kernel to the host code that waits for the work. Host side; kernels raise faults through
// fault.cuh.
//
// A kernel cannot throw. It writes a record to host memory that is mapped for the device; the first fault stays until it is reported.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/backend.h>

namespace tenon::cuda {

enum class FaultKind : std::uint32_t {
  none,
  index,        ///< `value` at `position` is not in [low, high)
  label,        ///< likewise, a class label
  zero_divisor  ///< an integer divided by zero
};

/// The state of a record. Kernels after those that were waited for may write while the host reads, so the host reads only complete records.
enum FaultState : std::uint32_t { fault_none, fault_being_written, fault_written };

/// Written by the device; read by the host after it has synchronized the stream.
struct FaultRecord {
  std::uint32_t state;  ///< FaultState
  FaultKind kind;
  tenon_op op;
  std::uint64_t node_id;  ///< tenon_node.id
  std::int64_t position, value, low, high;
};

/// The message, the same as that of the CPU backends for the same error.
std::string text_of(const FaultRecord& record);

}  // namespace tenon::cuda
