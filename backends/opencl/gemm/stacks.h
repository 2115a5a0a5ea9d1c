// SPDX-License-Identifier: Apache-2.0
// stacks.h - the leading dimensions of the operands of NumPy's matmul.
#pragma once

#include <algorithm>

#include <tenon/sdk/kernel.h>

#include "kernel/layout.h"

namespace tenon::opencl {

/// The dimensions before those of the matrices, broadcast, with the strides of a and b.
inline Layout stack_of(const sdk::Operand& a, const sdk::Operand& b) {
  sdk::Operand stacks[2] = {a, b};
  std::uint32_t rank = 0;
  for (sdk::Operand& stack : stacks) {
    stack.rank = stack.rank > 2 ? stack.rank - 2 : 0;
    rank = std::max(rank, stack.rank);
  }
  std::int64_t shape[TENON_MAX_RANK];
  for (std::uint32_t d = 0; d < rank; ++d) {
    shape[d] = 1;
    for (const sdk::Operand& stack : stacks) {
      const std::uint32_t missing = rank - stack.rank;
      if (d >= missing && stack.shape[d - missing] != 1) shape[d] = stack.shape[d - missing];
    }
  }
  return collapse<2>(shape, rank, {sdk::broadcast_strides(stacks[0], rank), sdk::broadcast_strides(stacks[1], rank)});
}

}  // namespace tenon::opencl
