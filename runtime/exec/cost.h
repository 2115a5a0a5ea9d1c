// exec/cost.h - what kernels have to do at least: arithmetic, and bytes to and from memory. Which nodes a kernel stands for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tenon/backend.h>
#include <tenon/graph.h>

namespace tenon::exec {

struct Cost {
  std::uint64_t flops = 0;       ///< a multiplication and its addition are two; exp, tanh and the like are one
  std::uint64_t size_bytes = 0;  ///< operands read and results written, once each
};

std::uint64_t flops_of(const Graph& graph, const NodeInfo& node);

/// Of nodes that one kernel computes: what passes between them stays out of memory.
Cost cost_of(const Graph& graph, const std::vector<NodeId>& nodes);

/// Per record: the nodes its kernel stands for. `nodes` are the plan's, by their index there. Backends tell one node of each kernel and how
/// many there are; the others are those nodes without a record that are next to them in the graph. A second record of a node, such as a
/// copy on its behalf, stands for none.
std::vector<std::vector<NodeId>> kernel_nodes(const Graph& graph, const std::vector<NodeId>& nodes,
                                              std::span<const tenon_profile_record> records);

}  // namespace tenon::exec
