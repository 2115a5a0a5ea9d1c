// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/fault.h - what kernels of a device report about invalid operands. They cannot throw: they
// write a record, which the host reads where it waits for the work.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/backend.h>

namespace tenon::sdk {

enum class FaultKind : std::uint32_t {
  none,
  index,        ///< `value` at `position` is not in [low, high)
  label,        ///< likewise, a class label
  zero_divisor  ///< an integer divided by zero
};

/// The first fault of a stream. Written by the device.
struct FaultRecord {
  std::uint32_t state;  ///< 0: none
  FaultKind kind;
  tenon_op op;
  std::uint64_t node_id;  ///< tenon_node.id
  std::int64_t position, value, low, high;
};

/// The message, the same as that of the CPU backends for the same error.
std::string text_of(const FaultRecord& record);

}  // namespace tenon::sdk
