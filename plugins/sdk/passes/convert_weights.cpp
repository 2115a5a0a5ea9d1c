// SPDX-License-Identifier: Apache-2.0
// convert_weights.cpp - takes conversions of weights out of what each execution runs.
#include <algorithm>

#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// Whether the plan builder inserted this conversion to f32, of a parameter or a constant that stays as it is until the next epoch.
bool converts_weights(const GraphModel& graph, const Node& node) {
  if (node.fused_count != 0 || node.group != nullptr || !is_widening(graph, node)) return false;
  if (node.row->kernel->traits.scratch != nullptr) return false;  // only executed nodes have scratch memory
  const std::uint32_t root = graph.values[node.inputs[0]].root;
  const Value& weights = graph.values[root];
  if ((weights.kind != TENON_VALUE_PARAMETER && weights.kind != TENON_VALUE_CONSTANT) || weights.count == 0) return false;
  return std::none_of(graph.donations.begin(), graph.donations.end(), [root](const tenon_donation& d) { return d.input == root; });
}

}  // namespace

void convert_weights(GraphModel& graph) {
  std::vector<bool> removed(graph.nodes.size(), false);
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    removed[n] = converts_weights(graph, graph.nodes[n]);
    if (removed[n]) graph.conversions.emplace(graph.nodes[n].outputs[0], graph.nodes[n]);
  }
  remove_nodes(graph, removed);
}

}  // namespace tenon::sdk
