// SPDX-License-Identifier: Apache-2.0
// graph/collectives.h - the op that the runtime computes itself, by the communicator of the program: no backend sees it.
#pragma once

#include <tenon/backend.h>

#include "graph/op.h"

namespace tenon::graph {

/// ops::all_reduce. Outside the ids of tenon/ops.def, which grow from 1, and of vendors, which begin at TENON_OP_VENDOR.
inline constexpr tenon_op op_all_reduce = 0x3f000000;
static_assert(op_all_reduce < TENON_OP_VENDOR);

inline bool is_collective(tenon_op op) {
  return op == op_all_reduce;
}

extern const OpLine line_all_reduce;
extern const OpRules rules_all_reduce;

}  // namespace tenon::graph
