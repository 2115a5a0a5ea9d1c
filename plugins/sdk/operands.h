// SPDX-License-Identifier: Apache-2.0
// operands.h - checks a node's operands against the op's line in ops.def.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph_model.h"

namespace tenon::sdk {

/// The column `indexing` of ops.def.
enum class Indexing : std::uint8_t { pointwise, reshape, transpose, expand, slice, pad, gather, axis, reduction, other };
/// other for an op, or a version of it, that neither ops.def nor older_ops.def lists.
Indexing indexing_of(const Node& node);

/// Bytes of the op's attributes; 0 for an op, or a version of it, that neither ops.def nor older_ops.def lists.
std::uint32_t attributes_size(tenon_op op, std::uint32_t version);

/// Why a node's operands do not match its op's line: an operand is missing, too many, or of another dtype, or a shape op's shapes do not
/// fit; of a vendor's op: what check_vendor_node says. reason is TENON_REASON_NONE if they match, or if ops.def does not list the op.
/// `selected` is the dtype that selects the kernel.
Diagnostic check_operands(const GraphModel& graph, const Node& node, tenon_dtype selected);

/// True if output `output` of a step over several tensors is the new value of input `input`: same name, same group.
bool updates_in_place(const Node& node, std::size_t input, std::size_t output);

}  // namespace tenon::sdk
