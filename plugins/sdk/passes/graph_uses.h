// SPDX-License-Identifier: Apache-2.0
// graph_uses.h - which node computes each value and which nodes read it, for the passes of the plan builder.
#pragma once

#include <cstdint>
#include <vector>

#include "graph_model.h"

namespace tenon::sdk {

/// An operand that a kernel reads: the node's index, and the value, which may be a view of the root under which it is listed.
struct Read {
  std::uint32_t node, value;
};

/// Per value: the node that computes it; TENON_NO_INDEX for a view, and for what no node computes.
std::vector<std::uint32_t> producers_of(const GraphModel& graph);

/// The uses of all values as the graph's nodes are when this is made. A pass may change values and nodes, and add values, while it works
/// with it; the indices of nodes must stay.
struct GraphUses {
  explicit GraphUses(const GraphModel& graph);

  /// The operand that reads this value, which is internal and no view, or a view of it; NULL if there is none or more than one.
  const Read* only_reader(std::uint32_t v) const;

  const GraphModel& graph;
  std::vector<std::vector<Read>> readers;  ///< per root, in the order of nodes
  std::vector<std::uint32_t> producers;    ///< producers_of()
  std::vector<bool> donated;               ///< per value: an output of the plan that overwrites a donated input
};

/// Removes the nodes whose flags are set.
void remove_nodes(GraphModel& graph, const std::vector<bool>& removed);

}  // namespace tenon::sdk
