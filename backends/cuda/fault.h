// fault.h - what a kernel finds wrong with its operands, on the way from the device to whoever waits for the work. Host side; kernels
// raise faults through fault.cuh.
//
// A kernel cannot throw. It leaves a record in host memory that the device reaches; the first one stays until it has been reported.
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

/// Whose a record is. Kernels that follow what was waited for may write while the host reads: it looks at whole records alone.
enum FaultState : std::uint32_t { fault_none, fault_being_written, fault_written };

/// Written by the device; read by the host when the stream has been waited for.
struct FaultRecord {
  std::uint32_t state;  ///< FaultState
  FaultKind kind;
  tenon_op op;
  std::uint32_t node;  ///< index in the plan's graph
  std::int64_t position, value, low, high;
};

/// The sentence that the CPU backends have for the same mistake.
std::string text_of(const FaultRecord& record);

}  // namespace tenon::cuda
