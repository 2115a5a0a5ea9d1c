// operands.h - what an op's line in ops.def says of the operands of a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "graph_model.h"

namespace tenon::sdk {

/// Bytes of the op's attributes; 0 for an op, or a version of it, that neither ops.def nor older_ops.def lists.
std::uint32_t attributes_size(tenon_op op, std::uint32_t version);

/// Why a node cannot be what its op's line says: an operand that is missing, too many, of another dtype, or a shape op's shapes that do not
/// fit. reason is TENON_REASON_NONE if all is well, or if ops.def does not list the op. `selected` is the dtype that selects the kernel.
struct Complaint {
  std::uint32_t reason = TENON_REASON_NONE;
  std::string text;
};
Complaint check_operands(const GraphModel& graph, const Node& node, tenon_dtype selected);

/// True if output `output` of a step over several tensors is the new value of input `input`: same name, same group.
bool renews(const Node& node, std::size_t input, std::size_t output);

}  // namespace tenon::sdk
