// SPDX-License-Identifier: Apache-2.0
// fuse_relu_grads.cpp - the gradient of a relu as part of the kernel that reads it, or of the one that makes what it reads.
#include <algorithm>

#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {

void fuse_relu_grads(GraphModel& graph) {
  const GraphUses uses(graph);
  std::vector<bool> absorbed(graph.nodes.size(), false);
  // The node that makes a value for one reader only, if it is this op.
  const auto only_for = [&](std::uint32_t v, tenon_op op) {
    const std::uint32_t maker = v != none && uses.only_reader(v) != nullptr ? uses.producers[v] : none;
    return maker != none && graph.nodes[maker].is(op) ? maker : none;
  };
  for (Node& node : graph.nodes) {
    if (!node.row->kernel->traits.relu_grad || node.relu_grad) continue;
    const std::uint32_t result = node.inputs[0], narrowing = only_for(result, TENON_OP_Cast);
    const std::uint32_t gradient = only_for(narrowing == none ? result : graph.nodes[narrowing].inputs[0], TENON_OP_ReluGrad);
    if (gradient == none) continue;
    std::uint32_t operands[2] = {none, none};
    std::vector<std::uint32_t> fused{gradient};
    if (narrowing != none) fused.push_back(narrowing);
    bool fits = true;
    for (std::size_t i = 0; i < 2; ++i) {
      operands[i] = graph.nodes[gradient].inputs[i];
      if (narrowing != none) {
        const std::uint32_t widening = uses.producers[operands[i]];
        fits = fits && widening != none && is_widening(graph, graph.nodes[widening]);
        if (!fits) break;
        if (only_for(operands[i], TENON_OP_Cast) != none) fused.push_back(widening);
        operands[i] = graph.nodes[widening].inputs[0];
      }
      fits = fits && same_layout(graph.values[operands[i]], graph.values[result]);
    }
    // A result over an operand that the kernel now reads would need a copy of it.
    for (const tenon_donation& d : graph.donations) {
      const bool is_own = std::find(node.outputs.begin(), node.outputs.end(), d.output) != node.outputs.end();
      for (std::size_t i = 0; fits && is_own && i < 2; ++i) fits = graph.values[operands[i]].root != graph.values[d.input].root;
    }
    if (!fits) continue;
    node.inputs[0] = operands[0];
    node.inputs.push_back(operands[1]);
    node.relu_grad = true;
    for (const std::uint32_t n : fused) {
      node.fused_count += graph.nodes[n].fused_count;
      absorbed[n] = true;
    }
  }
  remove_nodes(graph, absorbed);
}

void fuse_relu_grads_of_results(GraphModel& graph) {
  const GraphUses uses(graph);
  std::vector<bool> absorbed(graph.nodes.size(), false);
  // The only node that reads this internal value, as its first input.
  const auto only_reader = [&](std::uint32_t v) {
    const Read* const read = v == none ? nullptr : uses.only_reader(v);
    if (read == nullptr || read->value != v) return none;
    const Node& reader = graph.nodes[read->node];
    return reader.inputs[0] == v && reader.outputs.size() == 1 ? read->node : none;
  };
  for (Node& node : graph.nodes) {
    const Traits& traits = node.row->kernel->traits;
    if (!traits.epilogue || !traits.epilogue_relu_grad || node.relu_result != none || node.outputs.size() != 1) continue;
    const std::uint32_t made = node.outputs[0];
    std::vector<std::uint32_t> fused;
    std::uint32_t gradient = only_reader(made);
    if (gradient != none && is_widening(graph, graph.nodes[gradient])) {
      fused.push_back(gradient);
      gradient = only_reader(graph.nodes[gradient].outputs[0]);
    }
    if (gradient == none || !graph.nodes[gradient].is(TENON_OP_ReluGrad)) continue;
    std::uint32_t result = graph.nodes[gradient].outputs[0], relu_result = graph.nodes[gradient].inputs[1];
    if (!fused.empty()) {
      const std::uint32_t narrowing = only_reader(result), widening = uses.producers[relu_result];
      if (narrowing == none || !graph.nodes[narrowing].is(TENON_OP_Cast)) continue;
      if (widening == none || !is_widening(graph, graph.nodes[widening])) continue;
      if (uses.only_reader(relu_result) != nullptr) fused.push_back(widening);
      fused.push_back(narrowing);
      result = graph.nodes[narrowing].outputs[0];
      relu_result = graph.nodes[widening].inputs[0];
    }
    const Value& layout = graph.values[made];
    if (!same_layout(layout, graph.values[result]) || !same_layout(layout, graph.values[relu_result]) || uses.donated[result]) continue;
    fused.push_back(gradient);
    node.outputs[0] = result;
    node.relu_result = relu_result;
    for (const std::uint32_t n : fused) {
      node.fused_count += graph.nodes[n].fused_count;
      absorbed[n] = true;
    }
  }
  remove_nodes(graph, absorbed);
}

}  // namespace tenon::sdk
