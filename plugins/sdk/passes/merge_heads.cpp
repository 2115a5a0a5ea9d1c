// SPDX-License-Identifier: Apache-2.0
// merge_heads.cpp - the Transpose after an attention or its gradient, which puts the heads of a position next to each other, as part of its
// kernel.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "passes/graph_uses.h"
#include "passes/passes.h"

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

/// What x is after the Transpose: a view of its result.
Value view_of_result(const GraphModel& graph, const Node& transpose) {
  Value view = graph.values[transpose.inputs[0]];
  const Value& result = graph.values[transpose.outputs[0]];
  const auto& permutation = transpose.attr<tenon_attributes_axes>();
  for (std::uint32_t d = 0; d < view.rank; ++d) view.strides[permutation.axes[d]] = result.strides[d];
  view.update_dense();
  view.root = transpose.outputs[0];
  return view;
}

/// The Transpose that exchanges heads and rows of a result, if every other reader accepts the strides of a view of what the Transpose
/// makes; or none.
std::uint32_t transpose_of(GraphModel& graph, const GraphUses& uses, std::uint32_t v) {
  if (graph.values[v].kind != TENON_VALUE_INTERNAL || uses.donated[v]) return none;
  const auto exchanges = [&](const Read& read) {
    const Node& node = graph.nodes[read.node];
    return !node.requires_copy && exchanges_heads_and_rows(node, graph.values[v]) && !uses.donated[node.outputs[0]];
  };
  const auto found = std::find_if(uses.readers[v].begin(), uses.readers[v].end(), exchanges);
  if (found == uses.readers[v].end()) return none;
  std::vector<Operand> operands;
  const Value original = std::exchange(graph.values[v], view_of_result(graph, graph.nodes[found->node]));
  const bool all_take_it = std::all_of(uses.readers[v].begin(), uses.readers[v].end(), [&](const Read& read) {
    return read.node == found->node || reads_strides(graph, graph.nodes[read.node], v, operands);
  });
  graph.values[v] = original;
  return all_take_it ? found->node : none;
}

}  // namespace

void merge_heads(GraphModel& graph) {
  const GraphUses uses(graph);
  std::vector<bool> absorbed(graph.nodes.size(), false);
  std::vector<Operand> operands;
  for (Node& node : graph.nodes) {
    const Traits& traits = node.row->kernel->traits;
    if (traits.merges_heads == nullptr || !traits.merges_heads(describe(graph, node, operands))) continue;
    std::vector<std::pair<std::size_t, std::uint32_t>> transposes;  // of the results with four dimensions: all of them, or none is merged
    bool merges = true;
    for (std::size_t i = 0; i < node.outputs.size() && merges; ++i) {
      if (node.outputs[i] == none || graph.values[node.outputs[i]].rank != 4) continue;
      transposes.emplace_back(i, transpose_of(graph, uses, node.outputs[i]));
      merges = transposes.back().second != none;
    }
    if (!merges) continue;
    for (const auto& [i, n] : transposes) {
      graph.values[node.outputs[i]] = view_of_result(graph, graph.nodes[n]);
      node.outputs[i] = graph.nodes[n].outputs[0];
      node.merged_heads = true;
      node.fused_count += graph.nodes[n].fused_count;
      absorbed[n] = true;
    }
  }
  remove_nodes(graph, absorbed);
}

}  // namespace tenon::sdk
