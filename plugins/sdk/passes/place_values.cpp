// SPDX-License-Identifier: Apache-2.0
// place_values.cpp - where values and scratch memory are in the workspace.
#include <algorithm>

#include <tenon/sdk/memory_plan.h>
#include <tenon/sdk/rounding.h>

#include "passes/passes.h"
#include "plan.h"

namespace tenon::sdk {

void place_values(Layout& layout) {
  GraphModel& graph = layout.graph;
  const auto value_count = static_cast<std::uint32_t>(graph.values.size());
  std::vector<std::uint32_t> first(value_count, none), last(value_count, 0), storage(value_count);
  for (std::uint32_t v = 0; v < value_count; ++v) storage[v] = v;
  const auto internal = [&](std::uint32_t root) { return graph.values[root].kind == TENON_VALUE_INTERNAL; };
  std::vector<std::uint32_t> time(layout.steps.size(), 0);  // the same for steps that run together
  for (std::uint32_t s = 1; s < layout.steps.size(); ++s) time[s] = layout.steps[s].node.joins_previous ? time[s - 1] : s;
  for (std::uint32_t s = 0; s < layout.steps.size(); ++s) {
    const Node& node = layout.steps[s].node;
    const auto touch = [&](std::uint32_t v) {
      if (v == none || graph.conversion_of(v) != nullptr) return;
      const std::uint32_t root = graph.values[v].root;
      if (first[root] == none) first[root] = time[s];
      last[root] = time[s];
    };
    for (const std::uint32_t v : node.inputs) touch(v);
    for (const std::uint32_t v : node.outputs) touch(v);
    node.for_each_epilogue_operand(touch);
  }

  // A parameter that is only packed from is converted for that, before any step, one after the other. Constants were packed when the plan
  // was made.
  auto packing = static_cast<std::uint32_t>(layout.steps.size());
  for (const auto& [v, conversion] : graph.conversions) {
    const bool is_parameter = graph.values[graph.packed_root(v)].kind == TENON_VALUE_PARAMETER;
    if (is_parameter && !layout.converted.contains(v)) first[v] = last[v] = packing++;
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
      if (candidate == none || graph.conversion_of(candidate) != nullptr) continue;
      const std::uint32_t root = graph.values[candidate].root;
      if (!internal(root) || last[root] != time[s] || !same_layout(graph.values[candidate], out)) continue;
      const bool all_match = std::all_of(node.inputs.begin(), node.inputs.end(), [&](std::uint32_t v) {
        return v == none || graph.values[v].root != root || same_layout(graph.values[v], out);
      });
      bool is_in_epilogue = false;
      node.for_each_epilogue_operand([&](std::uint32_t v) { is_in_epilogue = is_in_epilogue || graph.values[v].root == root; });
      if (!all_match || is_in_epilogue) continue;
      storage[node.outputs[0]] = find(root);
      break;
    }
  }

  std::vector<std::uint64_t> size_bytes(value_count);
  for (std::uint32_t v = 0; v < value_count; ++v) size_bytes[v] = graph.values[v].size_bytes();
  for (const Step& step : layout.steps) {
    if (step.node.result_bytes) size_bytes[step.node.outputs[0]] = std::min(size_bytes[step.node.outputs[0]], *step.node.result_bytes);
  }
  std::vector<Interval> intervals;
  std::vector<std::uint32_t> interval_of(value_count, none);
  for (std::uint32_t v = 0; v < value_count; ++v) {
    if (graph.values[v].root != v || !internal(v) || first[v] == none || graph.values[v].count == 0) continue;
    const std::uint32_t owner = find(v);
    if (interval_of[owner] == none) {
      interval_of[owner] = static_cast<std::uint32_t>(intervals.size());
      intervals.push_back({first[v], last[v], aligned_size(size_bytes[v], layout.alignment)});
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
    intervals.push_back({time[s], time[s], aligned_size(layout.steps[s].scratch_size, layout.alignment)});
  }
  layout.workspace_size = assign_offsets(intervals);
  layout.locations.assign(value_count, {});
  for (std::uint32_t v = 0; v < value_count; ++v) {
    if (interval_of[v] != none) layout.locations[v] = {Location::Place::workspace, intervals[interval_of[v]].offset};
    if (graph.values[v].binding != none) layout.locations[v] = {Location::Place::binding, graph.values[v].binding};
  }
  for (const auto& [v, address] : layout.converted) layout.locations[v] = {Location::Place::plan, address};
  for (std::uint32_t s = 0; s < layout.steps.size(); ++s) {
    if (scratch_of[s] != none) layout.steps[s].scratch_offset = intervals[scratch_of[s]].offset;
  }
}

}  // namespace tenon::sdk
