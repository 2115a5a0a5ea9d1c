// SPDX-License-Identifier: Apache-2.0
// fuse_column_sums.cpp - the gradient of a bias, a sum over the rows that the product for the gradient of the weights reads anyway.
#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// Whether the node sums its operand over all dimensions but the last.
bool sums_rows(const Node& node, const Value& x) {
  if (!node.is(TENON_OP_ReduceSum) || x.rank < 2) return false;
  const auto& reduced = node.attr<tenon_attributes_axes>();
  if (reduced.count != x.rank - 1) return false;
  return reduced.axes[x.rank - 2] == x.rank - 2;  // ascending, from 0 on
}

}  // namespace

void fuse_column_sums(GraphModel& graph) {
  const GraphUses uses(graph);
  std::vector<bool> absorbed(graph.nodes.size(), false);
  std::vector<Operand> operands;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    Node& product = graph.nodes[n];
    const Traits& traits = product.row->kernel->traits;
    if (!product.is(TENON_OP_Gemm) || traits.column_sums == nullptr || product.outputs.size() != 1) continue;
    if (product.attr<tenon_attributes_gemm>().trans_b != 0 || !traits.column_sums(describe(graph, product, operands))) continue;
    const Value& rows = graph.values[product.inputs[1]];
    for (const Read& read : uses.readers[rows.root]) {
      const Node& sum = graph.nodes[read.node];
      const Value& x = graph.values[read.value];
      if (absorbed[read.node] || !sums_rows(sum, x) || !x.dense || !rows.dense || x.count != rows.count || x.dtype != rows.dtype) continue;
      const std::uint32_t result = sum.outputs[0];
      if (x.shape[x.rank - 1] != rows.shape[1] || graph.values[result].dtype != rows.dtype || uses.donated[result]) continue;
      // What reads the sum comes after the product, so that the product does not depend on it.
      const auto& readers = uses.readers[result];
      if (!readers.empty() && readers[0].node <= n) continue;
      product.outputs.push_back(result);
      product.fused_count += sum.fused_count;
      absorbed[read.node] = true;
      break;
    }
  }
  remove_nodes(graph, absorbed);
}

}  // namespace tenon::sdk
