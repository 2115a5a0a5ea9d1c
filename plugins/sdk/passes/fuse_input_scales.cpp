// SPDX-License-Identifier: Apache-2.0
// fuse_input_scales.cpp - a factor for each image and channel, as squeeze-excite blocks compute them, applied by the convolution that reads
// the product.
#include <cstdint>
#include <vector>

#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// Whether s has one element for each image and channel of x.
bool is_scale_of(const Value& s, const Value& x, bool channels_last) {
  if (!s.dense || s.dtype != x.dtype || s.rank != x.rank || x.rank < 3) return false;
  const std::uint32_t channel = channels_last ? x.rank - 1 : 1;
  for (std::uint32_t d = 0; d < x.rank; ++d) {
    if (s.shape[d] != (d == 0 || d == channel ? x.shape[d] : 1)) return false;
  }
  return true;
}

}  // namespace

void fuse_input_scales(GraphModel& graph) {
  const GraphUses uses(graph);
  std::vector<bool> absorbed(graph.nodes.size(), false);
  std::vector<Operand> operands;
  // The node that makes a value for one reader only, if it is this op.
  const auto only_for = [&](std::uint32_t v, tenon_op op) {
    const std::uint32_t maker = v != none && uses.only_reader(v) != nullptr ? uses.producers[v] : none;
    return maker != none && graph.nodes[maker].is(op) ? maker : none;
  };
  for (Node& node : graph.nodes) {
    const Traits& traits = node.row->kernel->traits;
    if (!node.is(TENON_OP_Conv) || traits.scaled_input == nullptr || node.inputs.size() > conv_input::scale) continue;
    const std::uint32_t result = node.inputs[0], narrowing = only_for(result, TENON_OP_Cast);
    const std::uint32_t product = only_for(narrowing == none ? result : graph.nodes[narrowing].inputs[0], TENON_OP_Mul);
    if (product == none) continue;
    // the operands, before the conversions to f32 of those of 16 bits
    std::uint32_t factors[2] = {graph.nodes[product].inputs[0], graph.nodes[product].inputs[1]};
    std::vector<std::uint32_t> fused{product};
    if (narrowing != none) {
      fused.push_back(narrowing);
      bool are_wide = true;
      for (std::uint32_t& v : factors) {
        const std::uint32_t widening = uses.producers[v];
        are_wide = are_wide && widening != none && is_widening(graph, graph.nodes[widening]);
        if (!are_wide) break;
        if (only_for(v, TENON_OP_Cast) != none) fused.push_back(widening);
        v = graph.nodes[widening].inputs[0];
      }
      if (!are_wide) continue;
    }
    const Value x = graph.values[result];
    const std::size_t image = same_layout(graph.values[factors[0]], x) ? 0 : 1;
    const std::uint32_t scale = factors[1 - image];
    if (!same_layout(graph.values[factors[image]], x) || !is_scale_of(graph.values[scale], x, node.channels_last)) continue;
    // A result over an operand that the kernel now reads would need a copy of it.
    bool fits = true;
    for (const tenon_donation& d : graph.donations) {
      for (const std::uint32_t v : node.outputs) {
        if (v != d.output) continue;
        for (const std::uint32_t factor : factors) fits = fits && graph.values[factor].root != graph.values[d.input].root;
      }
    }
    if (!fits) continue;
    const std::vector<std::uint32_t> before = node.inputs;
    node.inputs.resize(conv_input::count, none);
    node.inputs[0] = factors[image];
    node.inputs[conv_input::scale] = scale;
    if (!traits.scaled_input(describe(graph, node, operands))) {
      node.inputs = before;
      continue;
    }
    for (const std::uint32_t n : fused) {
      node.fused_count += graph.nodes[n].fused_count;
      absorbed[n] = true;
    }
  }
  remove_nodes(graph, absorbed);
}

}  // namespace tenon::sdk
