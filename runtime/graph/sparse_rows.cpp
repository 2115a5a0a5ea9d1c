// SPDX-License-Identifier: Apache-2.0
// sparse_rows.cpp - a plain gradient descent step with a gradient of a few rows touches only these rows.
#include <algorithm>

#include "graph/op.h"
#include "graph/passes.h"

namespace tenon::graph {
namespace {

bool is_zero(const GraphEditor& editor, ValueId id) {
  const ValueInfo& value = editor.info(id);
  if (value.kind != ValueKind::constant || value.shape.count() != 1 || !is_floating(value.dtype)) return false;
  return value.constant.item() == 0;
}

/// The ScatterAdd to zeros that computes `gradient`, or null.
const NodeInfo* maker_of_rows(GraphEditor& editor, ValueId gradient) {
  const NodeInfo* scatter = editor.producer(gradient);
  if (scatter == nullptr || scatter->op != TENON_OP_ScatterAdd) return nullptr;
  const NodeInfo* nothing = editor.producer(scatter->inputs[0]);
  return nothing != nullptr && nothing->op == TENON_OP_Expand && is_zero(editor, nothing->inputs[0]) ? scatter : nullptr;
}

/// -lr in the parameter's dtype.
ValueId descent(GraphEditor& editor, NodeId step, ValueId lr, DType dtype) {
  if (dtype != DType::f64) {
    tenon_attributes_cast to{};
    to.to = static_cast<tenon_dtype>(dtype);
    lr = editor.insert(step, TENON_OP_Cast, {lr}, dtype, {}, Attributes::of(to));
  }
  return editor.insert(step, TENON_OP_Neg, {lr}, dtype, {});
}

void take_rows_out(GraphEditor& editor, NodeId step) {
  const NodeInfo before = editor.node(step);  // a copy: the dense update is removed from it
  const auto& attributes = before.attributes.as<tenon_attributes_sgd>();
  if (attributes.momentum != 0 || attributes.weight_decay != 0) return;  // these change every row
  const ValueId lr = before.inputs[0];
  ValueId rate = no_id;
  std::vector<ValueId> dense{lr};
  for (std::size_t i = 0; i < before.outputs.size(); ++i) {
    const ValueId w = before.inputs[1 + 2 * i], g = before.inputs[2 + 2 * i];
    const NodeInfo* found = before.outputs[i] == no_id ? nullptr : maker_of_rows(editor, g);
    if (found == nullptr) {
      dense.insert(dense.end(), {w, g});
      continue;
    }
    const NodeInfo scatter = *found;
    const DType dtype = editor.info(w).dtype;
    if (rate == no_id) rate = descent(editor, step, lr, dtype);
    const ValueId rows = editor.insert(step, TENON_OP_Mul, {scatter.inputs[2], rate}, dtype, editor.info(scatter.inputs[2]).shape);
    editor.remake(before.outputs[i], TENON_OP_ScatterAdd, {w, scatter.inputs[1], rows}, scatter.attributes);
  }
  if (dense.size() != before.inputs.size()) editor.rewrite(step, dense, before.attributes);
}

}  // namespace

Graph update_rows(Graph graph) {
  GraphEditor editor(graph);
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    if (editor.node(id).op == TENON_OP_SgdStep) take_rows_out(editor, id);
  }
  editor.finish();
  return graph;
}

}  // namespace tenon::graph
