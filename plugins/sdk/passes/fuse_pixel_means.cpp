// SPDX-License-Identifier: Apache-2.0
// fuse_pixel_means.cpp - the mean over all pixels of a convolution's result, as squeeze-excite blocks compute it, by the convolution
// itself.
#include <cstdint>
#include <vector>

#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// Whether the node is a mean over the dimensions of an image x that are neither images nor channels.
bool averages_pixels(const Node& node, const Value& x, bool channels_last) {
  if (!node.is(TENON_OP_ReduceMean) || x.rank < 3) return false;
  const auto& reduced = node.attr<tenon_attributes_axes>();
  const std::int64_t first = channels_last ? 1 : 2;
  if (reduced.count != x.rank - 2) return false;
  for (std::uint32_t i = 0; i < reduced.count; ++i) {
    if (reduced.axes[i] != first + i) return false;
  }
  return true;
}

}  // namespace

void fuse_pixel_means(GraphModel& graph) {
  const GraphUses uses(graph);
  std::vector<bool> absorbed(graph.nodes.size(), false);
  std::vector<Operand> operands;
  for (Node& node : graph.nodes) {
    const Traits& traits = node.row->kernel->traits;
    if (!node.is(TENON_OP_Conv) || traits.pixel_means == nullptr || node.outputs.size() != 1 || node.outputs[0] == none) continue;
    const std::uint32_t y = node.outputs[0];
    const Value x = graph.values[y];
    const auto is_mean = [&](const Read& read, std::uint32_t of) {
      const Node& mean = graph.nodes[read.node];
      if (absorbed[read.node] || read.value != of || !averages_pixels(mean, x, node.channels_last)) return false;
      const Value& result = graph.values[mean.outputs[0]];
      if (is_half(x.dtype) ? result.dtype != TENON_DTYPE_F32 : result.dtype != x.dtype) return false;
      return result.dense && !uses.donated[mean.outputs[0]] && result.count == x.shape[0] * x.shape[node.channels_last ? x.rank - 1 : 1];
    };
    // The mean is of y, or of its conversion to f32.
    std::uint32_t mean = none, widening = none;
    for (const Read& read : uses.readers[y]) {
      if (is_mean(read, y)) mean = read.node;
      if (mean == none && read.value == y && is_widening(graph, graph.nodes[read.node])) {
        const std::uint32_t wide = graph.nodes[read.node].outputs[0];
        for (const Read& wide_read : uses.readers[wide]) {
          if (mean == none && is_mean(wide_read, wide)) mean = wide_read.node;
        }
        if (mean != none && uses.only_reader(wide) != nullptr) widening = read.node;
      }
      if (mean != none) break;
    }
    if (mean == none) continue;
    node.outputs.push_back(graph.nodes[mean].outputs[0]);
    if (!traits.pixel_means(describe(graph, node, operands))) {
      node.outputs.pop_back();
      continue;
    }
    node.fused_count += graph.nodes[mean].fused_count;
    absorbed[mean] = true;
    if (widening == none) continue;
    node.fused_count += graph.nodes[widening].fused_count;
    absorbed[widening] = true;
  }
  remove_nodes(graph, absorbed);
}

}  // namespace tenon::sdk
