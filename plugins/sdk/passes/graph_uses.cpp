// SPDX-License-Identifier: Apache-2.0
#include "passes/graph_uses.h"

#include <utility>

namespace tenon::sdk {

std::vector<std::uint32_t> producers_of(const GraphModel& graph) {
  std::vector<std::uint32_t> producers(graph.values.size(), TENON_NO_INDEX);
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (const std::uint32_t v : graph.nodes[n].outputs) {
      if (v != TENON_NO_INDEX) producers[v] = n;
    }
  }
  return producers;
}

GraphUses::GraphUses(const GraphModel& model)
    : graph(model), readers(model.values.size()), producers(producers_of(model)), donated(model.values.size(), false) {
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    graph.nodes[n].for_each_read([&](std::uint32_t v) { readers[graph.values[v].root].push_back({n, v}); });
  }
  for (const tenon_donation& d : graph.donations) donated[d.output] = true;
}

const Read* GraphUses::only_reader(std::uint32_t v) const {
  return graph.values[v].kind == TENON_VALUE_INTERNAL && readers[v].size() == 1 ? readers[v].data() : nullptr;
}

void remove_nodes(GraphModel& graph, const std::vector<bool>& removed) {
  std::vector<Node> kept;
  kept.reserve(graph.nodes.size());
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (!removed[n]) kept.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(kept);
}

}  // namespace tenon::sdk
