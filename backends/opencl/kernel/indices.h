// SPDX-License-Identifier: Apache-2.0
// indices.h - operands of indices, checked by the kernel that uses them.
#pragma once

#include "kernel/launch.h"

namespace tenon::opencl {

/// Sets the parameters of INDICES (kernel/common.cl) to input 1 of a call, for an axis of n elements.
inline Launch& add_indices(Launch& launch, const sdk::Call& call, tenon_op op, std::int64_t n) {
  const sdk::Operand& operand = call.inputs[1];
  launch.in(call, 1).value(static_cast<cl_int>(operand.dtype == TENON_DTYPE_I64));
  return launch.value(operand.count).value(n).fault(call, op);
}

}  // namespace tenon::opencl
