// SPDX-License-Identifier: Apache-2.0
// fold.cpp - evaluates nodes that depend only on constants at compile time.
#include <tenon/error.h>
#include <algorithm>

#include "graph/collectives.h"
#include "graph/op.h"
#include "graph/passes.h"
#include "graph/vendor_ops.h"

namespace tenon::graph {
namespace {

std::int64_t bytes_of(const ValueInfo& value) {
  return value.shape.count() * size_of(value.dtype);
}

/// The oracle, which evaluates constants, has no vendor's op; the sum of a constant over ranks depends on the others.
bool foldable(GraphEditor& editor, const NodeInfo& node, const std::vector<bool>& known) {
  if (is_vendor_op(node.op) || is_collective(node.op)) return false;
  std::int64_t in = 0, out = 0;
  for (const ValueId input : node.inputs) {
    if (input == no_id) continue;
    if (!known[input]) return false;
    in += bytes_of(editor.info(input));
  }
  for (const ValueId output : node.outputs) {
    if (output != no_id) out += bytes_of(editor.info(output));
  }
  // What reads dequantised weights is an op of floats, which would wait for them in each run.
  return node.op == TENON_OP_DequantizeLinear || worth_keeping(in, out);
}

}  // namespace

bool worth_keeping(std::int64_t made_of_bytes, std::int64_t result_bytes) {
  constexpr std::int64_t always = 64 * 1024;
  return result_bytes <= std::max(made_of_bytes, always);
}

std::vector<Value> apply_again(const Graph& from, const NodeInfo& node, const std::vector<Value>& operands, Graph& to) {
  NodeOptions options;
  options.name = node.name;
  const auto first = std::find_if(node.outputs.begin(), node.outputs.end(), [](ValueId v) { return v != no_id; });
  if (first != node.outputs.end()) options.shape = from.info(*first).shape;
  if (node.op == TENON_OP_Split) {
    const auto axis = static_cast<std::size_t>(node.attributes.as<tenon_attributes_axis>().axis);
    for (const ValueId part : node.outputs) options.sizes.push_back(from.info(part).shape[axis]);
  }
  return to.apply(node.op, operands, node.attributes, options);
}

Graph fold_constants(Graph graph, const Evaluate& evaluate) {
  GraphEditor editor(graph);
  std::vector<bool> known(editor.values().size());
  for (ValueId v = 0; v < known.size(); ++v) known[v] = editor.info(v).kind == ValueKind::constant;
  std::vector<bool> folds(editor.node_count());
  bool any = false;
  for (NodeId n = 0; n < folds.size(); ++n) {
    const NodeInfo& node = editor.node(n);
    folds[n] = foldable(editor, node, known);
    any = any || folds[n];
    for (const ValueId output : node.outputs) {
      if (folds[n] && output != no_id) known[output] = true;
    }
  }
  if (!any) return graph;

  // Values that leave the foldable part are read by a node that stays; outputs and updates stay computed.
  std::vector<bool> read_by_rest(editor.values().size());
  for (NodeId n = 0; n < folds.size(); ++n) {
    if (folds[n]) continue;
    for (const ValueId input : editor.node(n).inputs) {
      if (input != no_id) read_by_rest[input] = true;
    }
  }
  Graph constants;
  std::vector<Value> copy_of(editor.values().size());
  std::vector<ValueId> results;
  for (NodeId n = 0; n < folds.size(); ++n) {
    if (!folds[n]) continue;
    const NodeInfo node = editor.node(n);
    std::vector<Value> operands;
    for (const ValueId input : node.inputs) {
      if (input != no_id && !copy_of[input].present()) copy_of[input] = constants.constant(editor.info(input).constant);
      operands.push_back(input == no_id ? Value() : copy_of[input]);
    }
    const std::vector<Value> made = apply_again(graph, node, operands, constants);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (output == no_id) continue;
      copy_of[output] = made[i];
      if (!read_by_rest[output]) continue;
      constants.output(std::to_string(output), made[i]);
      results.push_back(output);
    }
  }
  if (results.empty()) return graph;
  const std::vector<Tensor> values = evaluate(constants);
  for (std::size_t i = 0; i < results.size(); ++i) editor.make_constant(results[i], values[i]);
  editor.finish();
  return graph;
}

}  // namespace tenon::graph
