// SPDX-License-Identifier: Apache-2.0
// indices.cuh - index operands, checked by the thread that uses them: an index out of range raises a fault and is skipped.
#pragma once

#include <cstdint>

#include "kernel/fault.cuh"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {

/// A dense operand of i32 or i64, each in [-n, n); negative ones count from the end. Passed to kernels by value.
struct Indices {
  const void* data;
  std::int64_t count;
  std::int64_t n;
  bool wide;
  Fault fault;

  /// The unchecked index.
  __device__ std::int64_t raw(std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
  }
  /// In [0, n); -1 after a fault.
  /// Errors  FaultKind::index, with the position.
  __device__ std::int64_t operator[](std::int64_t i) const {
    const std::int64_t index = raw(i);
    if (index >= -n && index < n) return index < 0 ? index + n : index;
    fault.raise(FaultKind::index, i, index, -n, n);
    return -1;
  }
};

/// Input 1 of a call, for an axis of n elements.
inline Indices indices_of(const sdk::Call& call, tenon_op op, std::int64_t n) {
  const sdk::Operand& operand = call.inputs[1];
  return {operand.data, operand.count, n, operand.dtype == TENON_DTYPE_I64, fault_of(call, op)};
}

/// For calls that have indices but no other work: invalid indices are still an error.
inline __global__ void check_indices(Indices indices) {
  for (std::int64_t i = thread_index(); i < indices.count; i += thread_count()) indices[i];
}

}  // namespace tenon::cuda
