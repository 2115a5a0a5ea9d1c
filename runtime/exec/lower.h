// exec/lower.h - part of a graph in the form the socket takes.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include <tenon/backend.h>
#include <tenon/graph.h>

namespace tenon::exec {

/// A tenon_graph and everything it points to. Not copyable: it points into itself and into the Graph it was made from.
struct WireGraph {
  WireGraph() = default;
  WireGraph(const WireGraph&) = delete;
  WireGraph& operator=(const WireGraph&) = delete;

  tenon_graph graph{};
  std::vector<ValueId> bound;    ///< per binding: the value whose address goes there
  std::vector<NodeId> node_ids;  ///< per wire node

  std::vector<tenon_value> values;
  std::vector<tenon_node> nodes;
  std::vector<tenon_donation> donations;
  std::list<std::vector<std::uint32_t>> operands;
  std::list<std::vector<std::uint64_t>> attributes;  ///< of nodes that are sent in an older version
};

/// How often each value is read: by nodes, outputs and updates.
std::vector<std::uint32_t> count_uses(const Graph& graph);

/// Lowers `nodes` (in an order in which they may run). `needed_outside[v]`: the value must be bound although a node here makes it.
/// `donations`: pairs (parameter, new value) whose storage is shared. `uses` is count_uses(graph): outputs nobody reads are left out.
void lower(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<bool>& needed_outside,
           const std::vector<GraphUpdate>& donations, const std::vector<std::uint32_t>& uses, WireGraph& out);

}  // namespace tenon::exec
