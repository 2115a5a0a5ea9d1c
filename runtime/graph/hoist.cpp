// SPDX-License-Identifier: Apache-2.0
// hoist.cpp - moves nodes that depend only on parameters and constants out of the graph that runs each time.
#include <algorithm>

#include "graph/collectives.h"
#include "graph/op.h"
#include "graph/passes.h"

namespace tenon::graph {
namespace {

std::int64_t bytes_of(const ValueInfo& value) {
  return value.shape.count() * size_of(value.dtype);
}

/// Decides which nodes move to the prologue.
class Choice {
 public:
  std::vector<bool> leaves;          ///< per node
  std::vector<bool> read_by_others;  ///< per value: by a node that stays

  Choice(const Graph& graph, const std::set<std::string>& fixed)
      : leaves(graph.nodes().size()), read_by_others(graph.values().size()), graph_(graph), read_by_leaving_(graph.values().size()) {
    std::vector<bool> known = fixed_values(graph, fixed), is_output(graph.values().size());
    for (const GraphOutput& output : graph.outputs()) is_output[output.value] = true;
    for (const GraphUpdate& update : graph.updates()) is_output[update.value] = true;
    for (NodeId n = 0; n < leaves.size(); ++n) {
      leaves[n] = may_leave(graph.nodes()[n], known, is_output);
      for (const ValueId output : graph.nodes()[n].outputs) {
        if (output != no_id && leaves[n]) known[output] = true;
      }
    }
    for (NodeId n = static_cast<NodeId>(leaves.size()); n-- > 0;) keep_what_costs_nothing(n);
  }

 private:
  const Graph& graph_;
  std::vector<bool> read_by_leaving_;

  bool may_leave(const NodeInfo& node, const std::vector<bool>& known, const std::vector<bool>& is_output) const {
    if (is_collective(node.op)) return false;  // all ranks take part, in each run
    std::int64_t in = 0, out = 0;
    for (const ValueId input : node.inputs) {
      if (input == no_id) continue;
      if (!known[input]) return false;
      in += bytes_of(graph_.info(input));
    }
    for (const ValueId output : node.outputs) {
      if (output == no_id) continue;
      if (is_output[output]) return false;
      out += bytes_of(graph_.info(output));
    }
    // What reads dequantised weights is an op of floats, which would wait for them in each run.
    return in > 0 && (node.op == TENON_OP_DequantizeLinear || worth_keeping(in, out));
  }

  /// From the last node back: a view that is read only by nodes that stay, stays with them, where it is free.
  void keep_what_costs_nothing(NodeId n) {
    const NodeInfo& node = graph_.nodes()[n];
    if (leaves[n] && is_view(node.op) && !read_by_leaving_[node.outputs[0]]) leaves[n] = false;
    for (const ValueId input : node.inputs) {
      if (input == no_id) continue;
      if (leaves[n]) {
        read_by_leaving_[input] = true;
      } else {
        read_by_others[input] = true;
      }
    }
  }
};

}  // namespace

Hoisted hoist(Graph graph, const std::set<std::string>& fixed) {
  const auto is_input = [](const ValueInfo& value) { return value.kind == ValueKind::input; };
  if (std::none_of(graph.values().begin(), graph.values().end(), is_input)) return {{}, std::move(graph)};
  const Choice choice(graph, fixed);
  Hoisted result;
  std::vector<Value> copy_of(graph.values().size());
  const auto operand = [&](ValueId id) {
    if (id == no_id) return Value();
    const ValueInfo& info = graph.info(id);
    if (!copy_of[id].present()) {
      copy_of[id] = info.kind == ValueKind::parameter ? result.prologue.parameter(info.name, info.dtype, info.shape)
                                                      : result.prologue.constant(info.constant, info.name);
    }
    return copy_of[id];
  };
  std::vector<ValueId> crossing;
  for (NodeId n = 0; n < choice.leaves.size(); ++n) {
    if (!choice.leaves[n]) continue;
    const NodeInfo& node = graph.nodes()[n];
    std::vector<Value> operands;
    for (const ValueId input : node.inputs) operands.push_back(operand(input));
    const DeviceScope device(result.prologue, node.device);
    const std::vector<Value> made = apply_again(graph, node, operands, result.prologue);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (output == no_id) continue;
      copy_of[output] = made[i];
      if (!choice.read_by_others[output]) continue;
      result.prologue.output(graph.info(output).name, made[i]);
      crossing.push_back(output);
    }
  }
  if (!crossing.empty()) {
    result.prologue = eliminate_dead_code(std::move(result.prologue));
    GraphEditor editor(graph);
    for (const ValueId id : crossing) editor.make_parameter(id);
    editor.finish();
  }
  result.main = std::move(graph);
  return result;
}

}  // namespace tenon::graph
