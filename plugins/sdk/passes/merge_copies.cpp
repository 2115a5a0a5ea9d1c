// SPDX-License-Identifier: Apache-2.0
// merge_copies.cpp - several copies that run together, for devices that have a kernel for it.
#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// The view that a Transpose makes a copy of.
std::uint32_t transposed_view(GraphModel& graph, const Node& transpose) {
  Value view = graph.values[transpose.outputs[0]];
  view_strides(transpose, graph.values[transpose.inputs[0]], view);
  view.update_dense();
  view.kind = TENON_VALUE_INTERNAL;
  view.binding = none;
  view.root = graph.values[transpose.inputs[0]].root;
  graph.values.push_back(view);
  return static_cast<std::uint32_t>(graph.values.size() - 1);
}

/// The largest value of the workspace that is kept for a copy that waits.
constexpr std::uint64_t max_kept_bytes = 64 * 1024;

}  // namespace

void merge_copies(GraphModel& graph, const KernelRow& batched) {
  const GraphUses uses(graph);
  std::vector<std::uint32_t> overwritten(graph.values.size(), none);  // by an output: the donated input
  for (const tenon_donation& d : graph.donations) overwritten[d.output] = d.input;
  std::vector<bool> read(graph.values.size(), false), written(graph.values.size(), false);  // by those that wait: roots
  std::vector<bool> done(graph.nodes.size(), false), waits(graph.nodes.size(), false), is_copy(graph.nodes.size(), false);
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    is_copy[n] = (node.is(TENON_OP_Reshape) || node.is(TENON_OP_Transpose)) && node.inputs.size() == 1 && node.group == nullptr &&
                 !node.has_epilogue_operands() && node.packed.empty() && size_of(graph.values[node.inputs[0]].dtype) > 0;
    if (!is_copy[n]) continue;
    const Value &from = graph.values[node.inputs[0]], &to = graph.values[node.outputs[0]];
    const bool keeps_memory = graph.values[from.root].kind == TENON_VALUE_INTERNAL && to.kind != TENON_VALUE_INTERNAL;
    is_copy[n] = !keeps_memory || from.size_bytes() <= max_kept_bytes;
  }
  const auto source_of = [&](std::uint32_t n) { return graph.values[graph.nodes[n].inputs[0]].root; };
  std::vector<Node> result;
  std::vector<std::uint32_t> waiting;
  const auto emit_waiting = [&](std::uint32_t next) {
    if (waiting.empty()) return;
    for (; next < graph.nodes.size(); ++next) {
      if (!is_copy[next] || done[next] || waits[next]) continue;
      const std::uint32_t from = source_of(next), maker = uses.producers[from];
      if (uses.readers[from].size() == 1 && maker != none && done[maker] && overwritten[graph.nodes[next].outputs[0]] == none)
        waiting.push_back(next);
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      done[waiting[i]] = true;
      Node& copy = graph.nodes[waiting[i]];
      if (waiting.size() > 1) {
        if (copy.is(TENON_OP_Transpose)) copy.inputs[0] = transposed_view(graph, copy);
        copy.row = &batched;
        copy.function = batched.kernel->functions[TENON_DTYPE_NONE];
        copy.joins_previous = i > 0;
      }
      result.push_back(std::move(copy));
    }
    waiting.clear();
    read.assign(read.size(), false);
    written.assign(written.size(), false);
  };
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (done[n]) continue;
    bool conflicts = false;
    node.for_each_read([&](std::uint32_t v) { conflicts = conflicts || written[graph.values[v].root]; });
    for (const std::uint32_t v : node.outputs) conflicts = conflicts || (v != none && overwritten[v] != none && read[overwritten[v]]);
    if (conflicts) emit_waiting(n);
    if (done[n]) continue;
    if (is_copy[n]) {
      const std::uint32_t to = node.outputs[0];
      read[source_of(n)] = written[to] = waits[n] = true;
      if (overwritten[to] != none) written[overwritten[to]] = true;
      waiting.push_back(n);
    } else {
      done[n] = true;
      result.push_back(node);
    }
  }
  emit_waiting(static_cast<std::uint32_t>(graph.nodes.size()));
  graph.nodes = std::move(result);
}

}  // namespace tenon::sdk
