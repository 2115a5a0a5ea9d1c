// SPDX-License-Identifier: Apache-2.0
// merge_heads.cpp - the Transpose after an attention, which puts the heads of a position next to each other, as part of its kernel.
#include <algorithm>
#include <iterator>
#include <vector>

#include "graph_uses.h"
#include "plan_passes.h"

namespace tenon::sdk {
namespace {

/// A Transpose of x, (B, H, S, E), whose result has the elements of (B, S, H, E) in order.
bool exchanges_heads_and_rows(const Node& node, const Value& x) {
  if (!node.is(TENON_OP_Transpose)) return false;
  std::vector<std::int64_t> order, expected;  // dimensions of one element may be anywhere
  for (const std::int64_t d : {0, 2, 1, 3}) {
    if (x.shape[d] != 1) expected.push_back(d);
  }
  const auto& permutation = node.attr<tenon_attributes_axes>();
  std::copy_if(permutation.axes, permutation.axes + x.rank, std::back_inserter(order), [&](std::int64_t d) { return x.shape[d] != 1; });
  return order == expected;
}

}  // namespace

void merge_heads(GraphModel& graph) {
  const GraphUses uses(graph);
  std::vector<bool> absorbed(graph.nodes.size(), false);
  std::vector<Operand> operands;
  for (Node& node : graph.nodes) {
    const Traits& traits = node.row->kernel->traits;
    if (traits.merges_heads == nullptr || !uses.has_one_reader(node.outputs[0]) || !traits.merges_heads(describe(graph, node, operands)))
      continue;
    const std::uint32_t n = uses.readers[node.outputs[0]][0].node;
    if (graph.nodes[n].requires_copy || !exchanges_heads_and_rows(graph.nodes[n], graph.values[node.outputs[0]]) ||
        uses.donated[graph.nodes[n].outputs[0]])
      continue;
    node.outputs[0] = graph.nodes[n].outputs[0];
    node.merged_heads = true;
    node.fused_count += graph.nodes[n].fused_count;
    absorbed[n] = true;
  }
  remove_nodes(graph, absorbed);
}

}  // namespace tenon::sdk
