// SPDX-License-Identifier: Apache-2.0
// fault.h - reports invalid operands found by a kernel to the host code that waits for the work. Host side; kernels raise faults through
// fault.cuh.
//
// A kernel cannot throw. It writes a record to host memory that is mapped for the device; the first fault stays until it is reported.
#pragma once

#include <cstdint>

#include <tenon/sdk/fault.h>

namespace tenon::cuda {

using sdk::FaultKind;
using sdk::FaultRecord;

/// The state of a record. Kernels after those that were waited for may write while the host reads, so the host reads only complete records.
enum FaultState : std::uint32_t { fault_none, fault_being_written, fault_written };

}  // namespace tenon::cuda
