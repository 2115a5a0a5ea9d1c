// SPDX-License-Identifier: Apache-2.0
// The passes that turn a graph into an ordered list of calls with a location for every value.
#include <algorithm>

#include <tenon/sdk/memory_plan.h>
#include <tenon/sdk/rounding.h>

#include "elementwise_group.h"
#include "graph_uses.h"
#include "operands.h"
#include "plan.h"
#include "plan_passes.h"

namespace tenon::sdk {
namespace {

/// The view that a Transpose makes a copy of.
std::uint32_t transposed_view(GraphModel& graph, const Node& transpose) {
  Value view = graph.values[transpose.outputs[0]];
  view_strides(graph, transpose, view);
  view.update_dense();
  view.kind = TENON_VALUE_INTERNAL;
  view.binding = none;
  view.root = graph.values[transpose.inputs[0]].root;
  graph.values.push_back(view);
  return static_cast<std::uint32_t>(graph.values.size() - 1);
}

/// The largest value of the workspace that is kept for a copy that waits.
constexpr std::uint64_t max_kept_bytes = 64 * 1024;

/// Makes one node of several copies. A copy waits until its result is read, or what it reads is overwritten; those that wait then are one
/// node, with later ones that are the only readers of a value computed before. A copy from the workspace to an output, which would keep
/// more memory while it waits, does not.
void merge_copies(GraphModel& graph, const KernelRow& batched) {
  const GraphUses uses(graph);
  std::vector<std::uint32_t> overwritten(graph.values.size(), none);  // by an output: the donated input
  for (const tenon_donation& d : graph.donations) overwritten[d.output] = d.input;
  std::vector<bool> read(graph.values.size(), false), written(graph.values.size(), false);  // by those that wait: roots
  std::vector<bool> done(graph.nodes.size(), false), waits(graph.nodes.size(), false), is_copy(graph.nodes.size(), false);
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    is_copy[n] = (node.is(TENON_OP_Reshape) || node.is(TENON_OP_Transpose)) && node.inputs.size() == 1 && node.group == nullptr &&
                 node.bias == none && node.residual == none && node.packed.empty() && size_of(graph.values[node.inputs[0]].dtype) > 0;
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
    for (const std::uint32_t n : waiting) {
      done[n] = true;
      if (waiting.size() > 1 && graph.nodes[n].is(TENON_OP_Transpose)) graph.nodes[n].inputs[0] = transposed_view(graph, graph.nodes[n]);
    }
    Node all = graph.nodes[waiting[0]];
    for (std::size_t i = 1; i < waiting.size(); ++i) {
      const Node& other = graph.nodes[waiting[i]];
      all.inputs.push_back(other.inputs[0]);
      all.outputs.push_back(other.outputs[0]);
      all.fused_count += other.fused_count;
      all.op = TENON_OP_Reshape;
      all.row = &batched;
      all.function = batched.kernel->functions[TENON_DTYPE_NONE];
    }
    result.push_back(std::move(all));
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

}  // namespace

void arrange(GraphModel& graph, const KernelRow* rows) {
  widen(graph, rows);
  put_channels_last(graph, rows);
  resolve_views(graph);
  if (graph.options.fusion == TENON_FUSION_FULL) {
    fuse_epilogues(graph);
    fuse_relu_grads(graph);
  }
  if (graph.options.fusion != TENON_FUSION_OFF) fuse_elementwise(graph);
  make_dense(graph, rows);
  order_for_donations(graph, rows);
  const KernelRow* const batched = graph.device == nullptr ? nullptr : graph.device->batched_copy();
  if (graph.options.fusion != TENON_FUSION_OFF && batched != nullptr) merge_copies(graph, *batched);
  for (const Node& node : graph.nodes) {
    if (node.group != nullptr) node.group->settle(graph, node);
  }
}

std::vector<tenon_answer> answer_all(GraphModel& graph, const KernelRow* rows) {
  std::vector<tenon_answer> answers;
  answers.reserve(graph.nodes.size());
  for (Node& node : graph.nodes) answers.push_back(answer(graph, node, rows));
  // A yes is binding, so the copies that donations need are tried with the supported nodes.
  for (bool settled = graph.donations.empty(); !settled;) {
    GraphModel trial = graph;
    std::vector<Node> supported;
    for (const Node& node : graph.nodes) {
      if (answers[node.index].supported != 0) supported.push_back(node);
    }
    trial.nodes = std::move(supported);
    try {
      arrange(trial, rows);
      settled = true;
    } catch (const MissingCopy& missing) {
      answers[missing.node] = refusal(TENON_REASON_GRAPH, missing.what());
    }
  }
  return answers;
}

void place_values(Layout& layout) {
  GraphModel& graph = layout.graph;
  const auto value_count = static_cast<std::uint32_t>(graph.values.size());
  std::vector<std::uint32_t> first(value_count, none), last(value_count, 0), storage(value_count);
  for (std::uint32_t v = 0; v < value_count; ++v) storage[v] = v;
  const auto internal = [&](std::uint32_t root) { return graph.values[root].kind == TENON_VALUE_INTERNAL; };
  for (std::uint32_t s = 0; s < layout.steps.size(); ++s) {
    const Node& node = layout.steps[s].node;
    const auto touch = [&](std::uint32_t v) {
      if (v == none) return;
      const std::uint32_t root = graph.values[v].root;
      if (first[root] == none) first[root] = s;
      last[root] = s;
    };
    for (const std::uint32_t v : node.inputs) touch(v);
    for (const std::uint32_t v : node.outputs) touch(v);
    touch(node.bias);
    touch(node.residual);
  }

  // In place: an elementwise result reuses the storage of an operand whose last reader this is.
  const auto find = [&](std::uint32_t v) {
    while (storage[v] != v) v = storage[v] = storage[storage[v]];
    return v;
  };
  for (std::uint32_t s = 0; s < layout.steps.size(); ++s) {
    const Node& node = layout.steps[s].node;
    // A step over several tensors pairs each output with an input of its own, which only donations state.
    if (!node.row->kernel->traits.in_place || node.outputs.size() != 1 || node.outputs[0] == none || !internal(node.outputs[0])) continue;
    const Value& out = graph.values[node.outputs[0]];
    for (const std::uint32_t candidate : node.inputs) {
      if (candidate == none) continue;
      const std::uint32_t root = graph.values[candidate].root;
      if (!internal(root) || last[root] != s || !same_layout(graph.values[candidate], out)) continue;
      const bool all_match = std::all_of(node.inputs.begin(), node.inputs.end(), [&](std::uint32_t v) {
        return v == none || graph.values[v].root != root || same_layout(graph.values[v], out);
      });
      if (!all_match || (node.bias != none && graph.values[node.bias].root == root)) continue;
      if (node.residual != none && graph.values[node.residual].root == root) continue;
      storage[node.outputs[0]] = find(root);
      break;
    }
  }

  std::vector<Interval> intervals;
  std::vector<std::uint32_t> interval_of(value_count, none);
  for (std::uint32_t v = 0; v < value_count; ++v) {
    if (graph.values[v].root != v || !internal(v) || first[v] == none || graph.values[v].count == 0) continue;
    const std::uint32_t owner = find(v);
    if (interval_of[owner] == none) {
      interval_of[owner] = static_cast<std::uint32_t>(intervals.size());
      intervals.push_back({first[v], last[v], aligned_size(graph.values[v].size_bytes(), layout.alignment)});
    }
    Interval& interval = intervals[interval_of[owner]];
    interval.first = std::min(interval.first, first[v]);
    interval.last = std::max(interval.last, last[v]);
    interval_of[v] = interval_of[owner];
  }
  std::vector<std::uint32_t> scratch_of(layout.steps.size(), none);
  for (std::uint32_t s = 0; s < layout.steps.size(); ++s) {
    if (layout.steps[s].scratch_size == 0) continue;
    scratch_of[s] = static_cast<std::uint32_t>(intervals.size());
    intervals.push_back({s, s, aligned_size(layout.steps[s].scratch_size, layout.alignment)});
  }
  layout.workspace_size = assign_offsets(intervals);
  layout.locations.assign(value_count, {});
  for (std::uint32_t v = 0; v < value_count; ++v) {
    if (interval_of[v] != none) layout.locations[v] = {Location::Place::workspace, intervals[interval_of[v]].offset};
    if (graph.values[v].binding != none) layout.locations[v] = {Location::Place::binding, graph.values[v].binding};
  }
  for (std::uint32_t s = 0; s < layout.steps.size(); ++s) {
    if (scratch_of[s] != none) layout.steps[s].scratch_offset = intervals[scratch_of[s]].offset;
  }
}

}  // namespace tenon::sdk
