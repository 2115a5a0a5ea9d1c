// SPDX-License-Identifier: Apache-2.0
// fault.cuh - raises a fault in the record of a stream. Passed to kernels by value.
#pragma once

#include "device/fault.h"
#include "kernel/launch.h"

namespace tenon::cuda {

struct Fault {
  FaultRecord* record;
  tenon_op op;
  std::uint64_t node_id;

  /// Threads  any number at once; the first is reported.
  __device__ void raise(FaultKind kind, std::int64_t position, std::int64_t value = 0, std::int64_t low = 0, std::int64_t high = 0) const {
    if (atomicCAS(&record->state, std::uint32_t{fault_none}, std::uint32_t{fault_being_written}) != fault_none) return;
    record->kind = kind;
    record->op = op;
    record->node_id = node_id;
    record->position = position;
    record->value = value;
    record->low = low;
    record->high = high;
    __threadfence_system();
    *static_cast<volatile std::uint32_t*>(&record->state) = fault_written;
  }
};

/// The fault of a call's kernels.
inline Fault fault_of(const sdk::Call& call, tenon_op op) {
  return {stream_of(call).faults().get(), op, call.node_id};
}

}  // namespace tenon::cuda
