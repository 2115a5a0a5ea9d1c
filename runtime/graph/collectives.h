// SPDX-License-Identifier: Apache-2.0
// graph/collectives.h - the ops that the runtime computes itself, by the communicator of the program: no backend sees them.
#pragma once

#include <tenon/backend.h>

#include "graph/op.h"

namespace tenon::graph {

/// ops::all_reduce and ops::broadcast. Outside the ids of tenon/ops.def, which grow from 1, and of vendors, which begin at TENON_OP_VENDOR.
inline constexpr tenon_op op_all_reduce = 0x3f000000, op_broadcast = 0x3f000001;
static_assert(op_broadcast < TENON_OP_VENDOR);

inline bool is_collective(tenon_op op) {
  return op == op_all_reduce || op == op_broadcast;
}

/// The attributes of op_broadcast.
struct BroadcastAttributes {
  std::uint32_t struct_size = 0;
  std::uint32_t root = 0;  ///< the rank whose operands all ranks get
};

extern const OpLine line_all_reduce, line_broadcast;
extern const OpRules rules_all_reduce, rules_broadcast;

}  // namespace tenon::graph
