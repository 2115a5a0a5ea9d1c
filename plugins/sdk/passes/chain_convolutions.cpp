// SPDX-License-Identifier: Apache-2.0
// chain_convolutions.cpp - convolutions that read each other's results, and a MaxPool after them, run in one call.
#include <array>
#include <cstdint>
#include <vector>

#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// Whether a chain that has the convolution `maker` can have `reader` next.
bool may_follow(const Node& maker, const Node& reader) {
  if (reader.is(TENON_OP_Conv)) return reader.row->kernel == maker.row->kernel && reader.function == maker.function;
  if (!reader.is(TENON_OP_MaxPool) || !maker.row->kernel->traits.chains_max_pool) return false;
  return reader.channels_last == maker.channels_last && reader.outputs[0] != none &&
         (reader.outputs.size() < 2 || reader.outputs[1] == none);
}

/// Whether `reader` is the only node that reads the one result of `maker`, all of it, as input 0. Its own result is not written in place
/// over an input of the plan, which the convolutions before it may still read while a chain writes the first rows.
bool continues(const GraphModel& graph, const GraphUses& uses, const Node& maker, const Node& reader) {
  if (!maker.is(TENON_OP_Conv) || reader.joins_previous || !may_follow(maker, reader)) return false;
  if (maker.outputs.size() != 1 || maker.outputs[0] == none) return false;
  for (const std::uint32_t output : reader.outputs) {
    if (output != none && uses.donated[output]) return false;
  }
  const std::uint32_t v = maker.outputs[0];
  const Read* const read = graph.values[v].root == v ? uses.only_reader(v) : nullptr;
  return read != nullptr && read->value == v && reader.inputs[0] == v;
}

}  // namespace

void chain_convolutions(GraphModel& graph) {
  const GraphUses uses(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Traits& traits = graph.nodes[n].row->kernel->traits;
    if (!graph.nodes[n].is(TENON_OP_Conv) || graph.nodes[n].joins_previous || traits.chains == nullptr) continue;
    std::size_t end = n + 1;
    while (end < graph.nodes.size() && end - n < max_calls_in_chain && continues(graph, uses, graph.nodes[end - 1], graph.nodes[end]))
      ++end;
    if (end < graph.nodes.size() && graph.nodes[end].joins_previous) --end;  // the last one begins calls that run together
    if (end <= n + 1) continue;
    std::array<std::vector<Operand>, max_calls_in_chain> operands;
    std::array<Call, max_calls_in_chain> calls;
    for (std::size_t i = n; i < end; ++i) calls[i - n] = describe(graph, graph.nodes[i], operands[i - n]);
    // the longest chain that the kernel takes
    while (end > n + 1 && !traits.chains(calls.data(), static_cast<std::uint32_t>(end - n))) --end;
    if (end == n + 1) continue;
    graph.nodes[n].chained = true;
    const auto count = static_cast<std::uint32_t>(end - n);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i > 0) graph.nodes[n + i].joins_previous = true;
      if (i + 1 == count || traits.chain_result_size == nullptr) continue;
      graph.nodes[n + i].result_bytes = traits.chain_result_size(calls.data(), count, i);
    }
    n = end - 1;
  }
}

}  // namespace tenon::sdk
