// SPDX-License-Identifier: Apache-2.0
// simplify.cpp - local rewrites that preserve all results bit for bit.
#include <tenon/error.h>
#include <cmath>
#include <optional>

#include "graph/op.h"
#include "graph/passes.h"

namespace tenon::graph {
namespace {

/// The value of a floating constant with one element (any rank).
std::optional<double> constant_of(const GraphEditor& editor, ValueId id) {
  const ValueInfo& value = editor.info(id);
  if (value.kind != ValueKind::constant || value.shape.count() != 1 || !is_floating(value.dtype)) return std::nullopt;
  return value.constant.item();
}

bool is_one(std::optional<double> value) {
  return value == 1.0;
}
/// -0 and 0 are different addends: x + 0 turns -0 into 0, x + (-0) leaves every x unchanged.
bool is_zero(std::optional<double> value, bool negative) {
  return value == 0.0 && std::signbit(*value) == negative;
}

/// The operand that a binary op returns unchanged, or no_id.
ValueId neutral(const GraphEditor& editor, const NodeInfo& node) {
  const ValueId a = node.inputs[0], b = node.inputs[1];
  const std::optional<double> left = constant_of(editor, a), right = constant_of(editor, b);
  switch (node.op) {
    case TENON_OP_Add:
      return is_zero(right, true) ? a : is_zero(left, true) ? b : no_id;
    case TENON_OP_Sub:
      return is_zero(right, false) ? a : no_id;
    case TENON_OP_Mul:
      return is_one(right) ? a : is_one(left) ? b : no_id;
    case TENON_OP_Div:
      return is_one(right) ? a : no_id;
    default:
      return no_id;
  }
}

bool broadcasts_operands(tenon_op op) {
  return op == TENON_OP_Add || op == TENON_OP_Sub || op == TENON_OP_Mul || op == TENON_OP_Div || op == TENON_OP_Equal;
}

/// Makes a broadcasting op read the operands of Expand instead of its results.
void skip_expansions(GraphEditor& editor, NodeId id) {
  for (std::size_t i : {0u, 1u}) {
    const NodeInfo& node = editor.node(id);
    const NodeInfo* expansion = editor.producer(node.inputs[i]);
    if (expansion == nullptr || expansion->op != TENON_OP_Expand) continue;
    const Shape& result = editor.info(node.outputs[0]).shape;
    // the other operand must have the shape of the result without the expansion
    if (editor.info(node.inputs[1 - i]).shape != result) continue;
    std::vector<ValueId> inputs = node.inputs;
    inputs[i] = expansion->inputs[0];
    const Attributes attributes = node.attributes;
    editor.rewrite(id, std::move(inputs), attributes);
  }
}

/// A Reshape of a Reshape or Flatten reads the operand of the latter.
void skip_arrangements(GraphEditor& editor, NodeId id) {
  const NodeInfo& node = editor.node(id);
  const NodeInfo* first = editor.producer(node.inputs[0]);
  if (first != nullptr && indexing_of(first->op) == Indexing::reshape) {
    const Attributes attributes = node.attributes;
    editor.rewrite(id, {first->inputs[0]}, attributes);
  }
}

/// Merges a Transpose of a Transpose.
void join_transpositions(GraphEditor& editor, NodeId id) {
  const NodeInfo& node = editor.node(id);
  const NodeInfo* first = editor.producer(node.inputs[0]);
  if (first == nullptr || first->op != TENON_OP_Transpose) return;
  const auto& before = first->attributes.as<tenon_attributes_axes>();
  tenon_attributes_axes joined = node.attributes.as<tenon_attributes_axes>();
  for (std::uint32_t i = 0; i < joined.count; ++i) joined.axes[i] = before.axes[joined.axes[i]];
  editor.rewrite(id, {first->inputs[0]}, Attributes::of(joined));
}

bool is_identity(const tenon_attributes_axes& permutation) {
  for (std::uint32_t i = 0; i < permutation.count; ++i) {
    if (permutation.axes[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

/// The value that a node's result equals bit for bit; no_id if there is none.
ValueId same_as(GraphEditor& editor, NodeId id) {
  const NodeInfo& node = editor.node(id);
  switch (node.op) {
    case TENON_OP_Add:
    case TENON_OP_Sub:
    case TENON_OP_Mul:
    case TENON_OP_Div:
      return neutral(editor, node);
    case TENON_OP_Neg: {
      const NodeInfo* first = editor.producer(node.inputs[0]);
      return first != nullptr && first->op == TENON_OP_Neg ? first->inputs[0] : no_id;
    }
    case TENON_OP_Transpose:
      return is_identity(node.attributes.as<tenon_attributes_axes>()) ? node.inputs[0] : no_id;
    case TENON_OP_Dropout:
      return node.attributes.as<tenon_attributes_random>().a == 0 ? node.inputs[0] : no_id;
    // these are the identity when neither dtype nor shape changes
    case TENON_OP_Cast:
    case TENON_OP_Reshape:
    case TENON_OP_Flatten:
    case TENON_OP_Expand:
      return node.inputs[0];
    default:
      return no_id;
  }
}

}  // namespace

Graph simplify(Graph graph) {
  GraphEditor editor(graph);
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    const tenon_op op = editor.node(id).op;
    if (broadcasts_operands(op)) skip_expansions(editor, id);
    if (op == TENON_OP_Reshape) skip_arrangements(editor, id);
    if (op == TENON_OP_Transpose) join_transpositions(editor, id);
    const ValueId same = same_as(editor, id);
    if (same == no_id) continue;
    const ValueId result = editor.node(id).outputs[0];
    const ValueInfo &was = editor.info(result), &is = editor.info(same);
    if (was.dtype == is.dtype && was.shape == is.shape) editor.redirect(result, same);
  }
  editor.finish();
  return graph;
}

}  // namespace tenon::graph
