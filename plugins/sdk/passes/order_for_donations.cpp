// SPDX-License-Identifier: Apache-2.0
// order_for_donations.cpp - the order of nodes, in which a donated input is read before it is overwritten, and the copies that this needs.
#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>

#include <tenon/sdk/error.h>

#include "operands.h"
#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// Makes readers of the donated input read a copy, the writer too if `writer_too`. Returns the node that makes the copy, to be run first.
Node snapshot(GraphModel& graph, const KernelRow* rows, const tenon_donation& donation, std::uint32_t writer, bool writer_too) {
  const std::uint32_t copy = graph.add_dense_copy(donation.input);
  std::vector<std::uint32_t> copies(graph.values.size(), none);
  copies[donation.input] = copy;
  const auto copy_of = [&](std::uint32_t v) {
    if (copies[v] == none) {
      Value view = graph.values[v];  // the view's strides fit the copy: a donated input that is not dense has no views
      view.root = copy;
      graph.values.push_back(view);
      copies[v] = static_cast<std::uint32_t>(graph.values.size() - 1);
    }
    return copies[v];
  };
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (n == writer && !writer_too) continue;
    Node& node = graph.nodes[n];
    for (std::uint32_t& v : node.inputs) {
      if (v != none && v < copies.size() && graph.values[v].root == donation.input) v = copy_of(v);
    }
    for (const EpilogueOperand& part : epilogue_operands) {
      std::uint32_t& v = node.*part.value;
      if (v != none && v < copies.size() && graph.values[v].root == donation.input) v = copy_of(v);
    }
  }
  return copy_node(graph, rows, donation.input, copy, graph.nodes[writer]);
}

/// True if the writer may overwrite the donated input although it reads it.
bool writes_safely(const GraphModel& graph, const tenon_donation& donation, const Node& writer) {
  const auto reads = [&](std::uint32_t v) { return v != none && graph.values[v].root == donation.input; };
  const auto output =
      static_cast<std::size_t>(std::find(writer.outputs.begin(), writer.outputs.end(), donation.output) - writer.outputs.begin());
  bool is_in_epilogue = false;  // of another result: donated results are not fused
  writer.for_each_epilogue_operand([&](std::uint32_t v) { is_in_epilogue = is_in_epilogue || reads(v); });
  if (is_in_epilogue) return false;
  for (std::size_t i = 0; i < writer.inputs.size(); ++i) {
    if (!reads(writer.inputs[i])) continue;
    if (!writer.row->kernel->traits.in_place || !same_layout(graph.values[writer.inputs[i]], graph.values[donation.output])) return false;
    if (writer.outputs.size() > 1 && !updates_in_place(writer, i, output)) return false;
  }
  return true;
}

/// A donation whose writer must run after a reader that depends on the writer. Data edges form no cycle, so there is such a donation.
std::uint32_t donation_on_a_cycle(const GraphModel& graph, const std::vector<std::vector<std::uint32_t>>& after, const GraphUses& uses) {
  for (std::uint32_t i = 0; i < graph.donations.size(); ++i) {
    const std::uint32_t writer = uses.producers[graph.donations[i].output];
    if (writer == none) continue;
    std::vector<bool> waits(graph.nodes.size(), false);
    std::vector<std::uint32_t> open{writer};
    while (!open.empty()) {
      const std::uint32_t n = open.back();
      open.pop_back();
      for (const std::uint32_t next : after[n]) {
        if (!waits[next]) open.push_back(next);
        waits[next] = true;
      }
    }
    for (const Read& read : uses.readers[graph.donations[i].input]) {
      if (read.node != writer && waits[read.node]) return i;
    }
  }
  throw Error(TENON_INTERNAL, "plan: the nodes form a cycle");
}

/// Stable topological order under data and donation edges. Returns a donation that cannot be honoured by order, or none. A donation whose
/// writer is not among the nodes adds no edge.
std::uint32_t try_order(GraphModel& graph) {
  const auto count = static_cast<std::uint32_t>(graph.nodes.size());
  const GraphUses uses(graph);
  std::vector<std::vector<std::uint32_t>> after(count);
  std::vector<std::uint32_t> pending(count, 0);
  const auto edge = [&](std::uint32_t from, std::uint32_t to) {
    after[from].push_back(to);
    ++pending[to];
  };
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    if (uses.producers[v] == none) continue;
    for (const Read& read : uses.readers[v]) edge(uses.producers[v], read.node);
  }
  for (const tenon_donation& d : graph.donations) {
    const std::uint32_t writer = uses.producers[d.output];
    if (writer == none) continue;
    for (const Read& read : uses.readers[d.input]) {
      if (read.node != writer) edge(read.node, writer);
    }
  }
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t n = 0; n < count; ++n) {
    if (pending[n] == 0) ready.push(n);
  }
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    const std::uint32_t n = ready.top();
    ready.pop();
    order.push_back(n);
    for (const std::uint32_t next : after[n]) {
      if (--pending[next] == 0) ready.push(next);
    }
  }
  if (order.size() < count) return donation_on_a_cycle(graph, after, uses);
  std::vector<Node> sorted;
  sorted.reserve(count);
  for (const std::uint32_t n : order) sorted.push_back(std::move(graph.nodes[n]));
  graph.nodes = std::move(sorted);
  return none;
}

}  // namespace

void order_for_donations(GraphModel& graph, const KernelRow* rows) {
  const std::vector<std::uint32_t> made_by = producers_of(graph);
  std::vector<Node> copies;
  for (const tenon_donation& d : graph.donations) {
    const std::uint32_t writer = made_by[d.output];
    if (writer != none && !writes_safely(graph, d, graph.nodes[writer])) copies.push_back(snapshot(graph, rows, d, writer, true));
  }
  graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(copies.begin()), std::make_move_iterator(copies.end()));
  for (std::uint32_t conflict; (conflict = try_order(graph)) != none;) {
    const tenon_donation& d = graph.donations[conflict];
    Node copy = snapshot(graph, rows, d, producers_of(graph)[d.output], false);
    graph.nodes.insert(graph.nodes.begin(), std::move(copy));
  }
}

}  // namespace tenon::sdk
