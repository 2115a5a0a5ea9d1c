// SPDX-License-Identifier: Apache-2.0
// run_together.cpp - nodes that one launch can run are put next to each other.
#include <cstdint>
#include <utility>
#include <vector>

#include "passes/passes.h"

namespace tenon::sdk {
namespace {

bool may_wait(const GraphModel& graph, const Node& node) {
  const Traits& traits = node.row->kernel->traits;
  if (traits.run_together == nullptr || traits.in_place || traits.elementwise || node.group != nullptr) return false;
  std::vector<Operand> operands;
  return traits.together_when == nullptr || traits.together_when(describe(graph, node, operands));
}

/// What nodes that wait may read of the workspace, in bytes: it is kept until they run.
constexpr std::uint64_t max_kept_bytes = std::uint64_t{16} << 20;

}  // namespace

void run_together(GraphModel& graph) {
  std::vector<std::uint32_t> overwritten(graph.values.size(), none);  // by an output: the donated input
  for (const tenon_donation& d : graph.donations) overwritten[d.output] = d.input;
  std::vector<bool> read(graph.values.size(), false), written(graph.values.size(), false);  // by those that wait: roots
  std::uint64_t kept_bytes = 0;
  std::vector<Node> result, waiting;
  const auto emit_waiting = [&] {
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      waiting[i].joins_previous = i > 0;
      result.push_back(std::move(waiting[i]));
    }
    waiting.clear();
    kept_bytes = 0;
    read.assign(read.size(), false);
    written.assign(written.size(), false);
  };
  for (std::size_t begin = 0, end = 1; begin < graph.nodes.size(); begin = end++) {
    while (end < graph.nodes.size() && graph.nodes[end].joins_previous) ++end;  // copies that run together stay so
    bool conflicts = false;
    for (std::size_t n = begin; n < end; ++n) {
      graph.nodes[n].for_each_read([&](std::uint32_t v) { conflicts = conflicts || written[graph.values[v].root]; });
      for (const std::uint32_t v : graph.nodes[n].outputs) {
        conflicts = conflicts || (v != none && overwritten[v] != none && read[overwritten[v]]);
      }
    }
    Node& node = graph.nodes[begin];
    const bool waits = end == begin + 1 && may_wait(graph, node);
    if (waits && !waiting.empty()) {
      conflicts = conflicts || waiting[0].row->kernel->traits.run_together != node.row->kernel->traits.run_together;
    }
    if (conflicts) emit_waiting();
    if (!waits) {
      for (std::size_t n = begin; n < end; ++n) result.push_back(std::move(graph.nodes[n]));
      continue;
    }
    node.for_each_read([&](std::uint32_t v) {
      const std::uint32_t root = graph.values[v].root;
      if (!read[root] && graph.values[root].kind == TENON_VALUE_INTERNAL) kept_bytes += graph.values[root].size_bytes();
      read[root] = true;
    });
    for (const std::uint32_t v : node.outputs) {
      if (v == none) continue;
      written[v] = true;
      if (overwritten[v] != none) written[overwritten[v]] = true;
    }
    waiting.push_back(std::move(node));
    if (waiting.size() == max_calls_together || kept_bytes > max_kept_bytes) emit_waiting();
  }
  if (!waiting.empty()) emit_waiting();
  graph.nodes = std::move(result);
}

}  // namespace tenon::sdk
