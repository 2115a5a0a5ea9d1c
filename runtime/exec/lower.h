// SPDX-License-Identifier: Apache-2.0
// exec/lower.h - lowers part of a graph to the plugin ABI's structs.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include <tenon/backend.h>
#include <tenon/graph.h>

namespace tenon::exec {

/// A tenon_graph and everything it points to. Not copyable: it points into itself and into the source Graph.
struct AbiGraph {
  AbiGraph() = default;
  AbiGraph(const AbiGraph&) = delete;
  AbiGraph& operator=(const AbiGraph&) = delete;

  tenon_graph graph{};
  std::uint64_t program = 0;     ///< upper half of the nodes' ids, so that they differ between programs
  std::vector<ValueId> bound;    ///< per binding: the bound value
  std::vector<NodeId> node_ids;  ///< per ABI node

  std::vector<tenon_value> values;
  std::vector<tenon_node> nodes;
  std::vector<tenon_donation> donations;
  std::list<std::vector<std::uint32_t>> operands;
  std::list<std::vector<std::uint64_t>> attributes;  ///< attributes of nodes that are lowered to an older version
};

/// Number of uses of each value by nodes, outputs and updates.
std::vector<std::uint32_t> count_uses(const Graph& graph);

/// Lowers `nodes`, which are in topological order. `needed_outside[v]`: the value must be bound although a node here computes it.
/// `donations`: pairs (parameter, new value) that share storage. `uses` is count_uses(graph): unused outputs are left out.
void lower(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<bool>& needed_outside,
           const std::vector<GraphUpdate>& donations, const std::vector<std::uint32_t>& uses, AbiGraph& out);

}  // namespace tenon::exec
