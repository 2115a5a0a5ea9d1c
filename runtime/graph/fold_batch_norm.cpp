// SPDX-License-Identifier: Apache-2.0
// fold_batch_norm.cpp - folds the scale and shift of a batch norm into the preceding convolution.
#include <tenon/error.h>

#include "graph/op.h"
#include "graph/passes.h"

namespace tenon::graph {
namespace {

/// Number of uses of each value by nodes, outputs and updates.
std::vector<std::uint32_t> readers_of(GraphEditor& editor, const Graph& graph) {
  std::vector<std::uint32_t> readers(editor.values().size());
  for (NodeId n = 0; n < editor.node_count(); ++n) {
    for (const ValueId input : editor.node(n).inputs) {
      if (input != no_id) ++readers[input];
    }
  }
  for (const GraphOutput& output : graph.outputs()) ++readers[output.value];
  for (const GraphUpdate& update : graph.updates()) ++readers[update.value];
  return readers;
}

/// The operands of the two nodes.
struct Pair {
  ValueId w, b;  ///< b may be absent
  ValueId scale, bias, mean, variance;
  double epsilon;
};

/// Folds batch norms. A folded weight is computed from fixed values, and therefore counts as fixed as well.
struct Fold {
  GraphEditor& editor;
  std::vector<bool> fixed_values;

  bool fixed(ValueId value) const { return value == no_id || (value < fixed_values.size() && fixed_values[value]); }

  ValueId insert(NodeId before, tenon_op op, std::vector<ValueId> inputs, const Shape& shape) {
    const DType dtype = editor.info(inputs[0]).dtype;
    const ValueId value = editor.insert(before, op, std::move(inputs), dtype, shape);
    fixed_values.resize(value + 1);
    fixed_values[value] = true;
    return value;
  }

  ValueId number(DType dtype, double value) {
    if (dtype == DType::f64) return editor.add_constant(Tensor::scalar<double>(value));
    return editor.add_constant(Tensor::scalar<float>(static_cast<float>(value)));
  }

  /// With s = scale / sqrt(variance + epsilon): w' = w s, b' = (b - mean) s + bias.
  void absorb(NodeId conv, const Pair& of) {
    const Shape channels = editor.info(of.scale).shape;
    const Shape filters = editor.info(of.w).shape;
    const ValueId sum = insert(conv, TENON_OP_Add, {of.variance, number(editor.info(of.variance).dtype, of.epsilon)}, channels);
    const ValueId deviation = insert(conv, TENON_OP_Sqrt, {sum}, channels);
    const ValueId factor = insert(conv, TENON_OP_Div, {of.scale, deviation}, channels);
    Shape spread{channels[0]};
    while (spread.rank() < filters.rank()) spread.push_back(1);
    const ValueId w = insert(conv, TENON_OP_Mul, {of.w, insert(conv, TENON_OP_Reshape, {factor}, spread)}, filters);
    const ValueId centred =
        of.b == no_id ? insert(conv, TENON_OP_Neg, {of.mean}, channels) : insert(conv, TENON_OP_Sub, {of.b, of.mean}, channels);
    const ValueId b = insert(conv, TENON_OP_Add, {insert(conv, TENON_OP_Mul, {centred, factor}, channels), of.bias}, channels);
    const NodeInfo& node = editor.node(conv);
    const Attributes attributes = node.attributes;
    editor.rewrite(conv, {node.inputs[0], w, b}, attributes);
  }

  /// True if node `norm` was a batch norm and has been folded into its convolution.
  bool fold(NodeId norm, const std::vector<std::uint32_t>& readers) {
    const NodeInfo& node = editor.node(norm);
    if (node.op != TENON_OP_BatchNormalization) return false;
    const auto& attributes = node.attributes.as<tenon_attributes_batch_norm>();
    const ValueId x = node.inputs[0];
    const NodeInfo* maker = editor.producer(x);
    if (attributes.axis != 1 || maker == nullptr || maker->op != TENON_OP_Conv || readers[x] != 1 || maker->device != node.device)
      return false;
    const Pair of{maker->inputs[1],  maker->inputs.size() > 2 ? maker->inputs[2] : no_id,
                  node.inputs[1],    node.inputs[2],
                  node.inputs[3],    node.inputs[4],
                  attributes.epsilon};
    for (const ValueId value : {of.w, of.b, of.scale, of.bias, of.mean, of.variance}) {
      if (!fixed(value)) return false;
    }
    if (editor.info(of.w).dtype != editor.info(of.scale).dtype) return false;  // 16-bit weights, where the factors have more precision
    if (!editor.redirect(node.outputs[0], x)) return false;
    absorb(editor.info(x).producer, of);
    return true;
  }
};

}  // namespace

Graph fold_batch_norm(Graph graph, const std::set<std::string>& fixed) {
  GraphEditor editor(graph);
  std::vector<std::uint32_t> readers = readers_of(editor, graph);
  Fold fold{editor, fixed_values(graph, fixed)};
  for (NodeId n = 0; n < editor.node_count(); ++n) {
    const ValueId y = editor.node(n).outputs[0];
    const ValueId x = editor.node(n).inputs.empty() ? no_id : editor.node(n).inputs[0];
    // readers of y now read the convolution's result
    if (fold.fold(n, readers)) readers[x] = readers[y];
  }
  editor.finish();
  return graph;
}

}  // namespace tenon::graph
