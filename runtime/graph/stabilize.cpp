// SPDX-License-Identifier: Apache-2.0
// stabilize.cpp - rewrites numerically unstable expressions to stable forms.
#include <cmath>
#include <optional>

#include "graph/op.h"
#include "graph/passes.h"

namespace tenon::graph {
namespace {

/// A pattern's view of a node and the producers of its operands.
struct View {
  GraphEditor& editor;
  NodeId id;

  const NodeInfo& node() const { return editor.node(id); }
  const NodeInfo* maker(std::size_t operand) const { return editor.producer(node().inputs[operand]); }
  bool made_by(std::size_t operand, tenon_op op) const { return maker(operand) != nullptr && maker(operand)->op == op; }
  /// True if the operand has the result's own dtype and shape: no broadcasting.
  bool fits(ValueId value) const {
    const ValueInfo& result = editor.info(node().outputs[0]);
    return editor.info(value).dtype == result.dtype && editor.info(value).shape == result.shape;
  }
  bool is_constant(ValueId value, double number) const {
    const ValueInfo& info = editor.info(value);
    return info.kind == ValueKind::constant && info.shape.count() == 1 && is_floating(info.dtype) && info.constant.item() == number;
  }
};

/// The other operand of a binary node with the constant on either side; no_id if there is none.
ValueId operand_with(const View& at, const NodeInfo& node, double number) {
  for (const std::size_t i : {0u, 1u}) {
    if (at.is_constant(node.inputs[i], number) && at.fits(node.inputs[1 - i])) return node.inputs[1 - i];
  }
  return no_id;
}

bool rewrite_log(const View& at) {
  const NodeInfo* argument = at.maker(0);
  if (argument == nullptr) return false;
  switch (argument->op) {
    case TENON_OP_Add: {
      const ValueId a = operand_with(at, *argument, 1);
      if (a == no_id) return false;
      at.editor.replace(at.id, TENON_OP_Log1p, {a});
      return true;
    }
    case TENON_OP_Sigmoid: {
      const ValueId negated = at.editor.insert(at.id, TENON_OP_Neg, argument->inputs[0]);
      at.editor.replace(at.id, TENON_OP_Neg, {at.editor.insert(at.id, TENON_OP_Softplus, negated)});
      return true;
    }
    case TENON_OP_Softmax: {
      const Attributes axis = argument->attributes;
      at.editor.replace(at.id, TENON_OP_LogSoftmax, {argument->inputs[0]}, axis);
      return true;
    }
    default:
      return false;
  }
}

bool rewrite_log1p(const View& at) {
  if (!at.made_by(0, TENON_OP_Exp)) return false;
  at.editor.replace(at.id, TENON_OP_Softplus, {at.maker(0)->inputs[0]});
  return true;
}

bool rewrite_sub(const View& at) {
  const ValueId a = at.node().inputs[0];
  const ValueId b = at.node().inputs[1];
  if (at.is_constant(b, 1) && at.made_by(0, TENON_OP_Exp) && at.fits(a)) {
    at.editor.replace(at.id, TENON_OP_Expm1, {at.maker(0)->inputs[0]});
    return true;
  }
  if (at.is_constant(a, 1) && at.made_by(1, TENON_OP_Sigmoid) && at.fits(b)) {
    at.editor.replace(at.id, TENON_OP_Sigmoid, {at.editor.insert(at.id, TENON_OP_Neg, at.maker(1)->inputs[0])});
    return true;
  }
  return false;
}

bool rewrite_add(const View& at) {
  const ValueId x = operand_with(at, at.node(), -1);
  const NodeInfo* maker = x == no_id ? nullptr : at.editor.producer(x);
  if (maker == nullptr || maker->op != TENON_OP_Exp) return false;
  at.editor.replace(at.id, TENON_OP_Expm1, {maker->inputs[0]});
  return true;
}

bool rewrite(const View& at) {
  switch (at.node().op) {
    case TENON_OP_Log:
      return rewrite_log(at);
    case TENON_OP_Log1p:
      return rewrite_log1p(at);
    case TENON_OP_Sub:
      return rewrite_sub(at);
    case TENON_OP_Add:
      return rewrite_add(at);
    default:
      return false;
  }
}

void rewrite_all(GraphEditor& editor) {
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    while (rewrite({editor, id})) {  // log(1 + exp(x)) needs two rewrites; each changes the op, so this terminates
    }
  }
}

}  // namespace

void stabilize_in_place(Graph& graph) {
  GraphEditor editor(graph);
  rewrite_all(editor);
  editor.weave();
}

Graph stabilize(Graph graph) {
  GraphEditor editor(graph);
  rewrite_all(editor);
  editor.finish();
  return graph;
}

}  // namespace tenon::graph
