// SPDX-License-Identifier: Apache-2.0
// exec/cost.h - the minimum work of kernels: flops and memory traffic. Maps kernels to the nodes they compute.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tenon/backend.h>
#include <tenon/graph.h>

namespace tenon::exec {

struct Cost {
  std::uint64_t flops = 0;       ///< as OpRules::flops counts them
  std::uint64_t size_bytes = 0;  ///< operands and results, each counted once
};

/// Cost of nodes that one kernel computes; values between them do not go through memory.
Cost cost_of(const Graph& graph, const std::vector<NodeId>& nodes);

/// The dtype of the first operand with several elements of the node with the most flops: that of the products of a kernel that computes
/// these nodes. The first operand of an optimizer's step is the learning rate, a number of f64. f32 without operands.
DType arithmetic_dtype(const Graph& graph, const std::vector<NodeId>& nodes);

/// Per record: the nodes that its kernel computes, as indices into the plan's `nodes`. A backend reports one node of each kernel and the
/// number of nodes; the others are adjacent in the graph, and have no records or only those of conversions. Of several records of a node,
/// the one whose algorithm begins with the name of its op computes it, else a group that has its op, else the one with the most nodes, of
/// these a group, of these the first. The others are conversions of its operands or results, such as a change of layout, and have no nodes.
std::vector<std::vector<NodeId>> kernel_nodes(const Graph& graph, const std::vector<NodeId>& nodes,
                                              std::span<const tenon_profile_record> records);

/// The cost of each record. A conversion reads and writes one value: an operand if it runs before its node's kernel, a result if it runs
/// after. Records do not say which; conversions of large values are what a backend makes, so the largest are assumed.
std::vector<Cost> kernel_costs(const Graph& graph, const std::vector<NodeId>& nodes, std::span<const tenon_profile_record> records,
                               const std::vector<std::vector<NodeId>>& kernels);

}  // namespace tenon::exec
