// SPDX-License-Identifier: Apache-2.0
#include "quantize/prepare.h"

#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <tenon/functions.h>

#include "exec/oracle.h"
#include "graph/passes.h"
#include "quantize/readers.h"

namespace tenon::quantize {
namespace {

/// Whether a constant adds one number for each column of a product (m, n).
bool is_row(const ValueInfo& value, std::int64_t n) {
  const Shape& shape = value.shape;
  return value.kind == ValueKind::constant && shape.count() == n && (shape.rank() == 1 || (shape.rank() == 2 && shape[0] == 1));
}

/// (s, l): 0 where query s sees key l, else -infinity.
Tensor causal_mask(std::int64_t queries, std::int64_t keys) {
  std::vector<float> mask;
  mask.reserve(static_cast<std::size_t>(queries * keys));
  for (std::int64_t s = 0; s < queries; ++s) {
    for (std::int64_t l = 0; l < keys; ++l) mask.push_back(l <= s ? 0 : -std::numeric_limits<float>::infinity());
  }
  return Tensor::of(mask, {queries, keys});
}

}  // namespace

Graph join_bias(Graph graph) {
  const Readers readers(graph);
  graph::GraphEditor editor(graph);
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    const NodeInfo sum = editor.node(id);
    if (sum.op != TENON_OP_Add) continue;
    for (const std::size_t side : {0, 1}) {
      const ValueId product = sum.inputs[side], bias = sum.inputs[1 - side];
      const NodeInfo* const maker = editor.producer(product);
      if (maker == nullptr || maker->op != TENON_OP_MatMul || !readers.only_one(product)) continue;
      const ValueId a = maker->inputs[0], w = maker->inputs[1];
      if (editor.info(a).shape.rank() != 2 || editor.info(w).shape.rank() != 2 || editor.info(w).kind != ValueKind::constant ||
          !is_row(editor.info(bias), editor.info(w).shape[1]) || !editor.redirect(sum.outputs[0], product))
        continue;
      tenon_attributes_gemm attributes{};
      attributes.alpha = attributes.beta = 1;
      editor.replace(editor.info(product).producer, TENON_OP_Gemm, {a, w, bias}, Attributes::of(attributes));
      break;
    }
  }
  editor.finish();
  return graph;
}

bool is_global_average_pool(const Graph& graph, const NodeInfo& node) {
  if (node.op != TENON_OP_ReduceMean) return false;
  const auto& attributes = node.attributes.as<tenon_attributes_axes>();
  const std::size_t rank = graph.info(node.inputs[0]).shape.rank();
  if (rank < 3 || attributes.count + 2 != rank) return false;
  for (std::size_t i = 0; i < attributes.count; ++i) {
    if (attributes.axes[i] != static_cast<std::int64_t>(i) + 2) return false;
  }
  return true;
}

Graph keep_pooled_dimensions(Graph graph) {
  graph::GraphEditor editor(graph);
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    const NodeInfo node = editor.node(id);
    if (!is_global_average_pool(graph, node) || node.attributes.as<tenon_attributes_axes>().keepdims != 0) continue;
    const ValueId x = node.inputs[0];
    const ValueId pooled = editor.build(id, [&] { return ops::global_average_pool(Value(&graph, x)); });
    editor.replace(id, TENON_OP_Reshape, {pooled});
  }
  editor.finish();
  return graph;
}

Graph separate_attention(Graph graph) {
  graph::GraphEditor editor(graph);
  std::map<std::pair<std::int64_t, std::int64_t>, ValueId> causal_masks;  // by queries and keys
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    const NodeInfo node = editor.node(id);
    if (node.op != TENON_OP_Attention || editor.info(node.inputs[0]).dtype != DType::f32) continue;
    if (node.outputs.size() > 1 && node.outputs[1] != no_id) continue;
    const Shape q = editor.info(node.inputs[0]).shape, k = editor.info(node.inputs[1]).shape;
    if (q[1] != k[1]) continue;
    const auto attributes = node.attributes.as<tenon_attributes_attention>();
    const ValueId y = editor.build(id, [&] {
      const auto operand = [&](std::size_t i) { return Value(&graph, node.inputs[i]); };
      Value scores = ops::mul(ops::matmul(operand(0), ops::transpose(operand(1), {0, 1, 3, 2})), attributes.scale);
      Value mask = node.inputs.size() > 3 && node.inputs[3] != no_id ? operand(3) : Value();
      if (attributes.causal != 0) {
        const auto [at, is_new] = causal_masks.try_emplace({q[2], k[2]});
        if (is_new) at->second = graph.constant(causal_mask(q[2], k[2])).id();
        const Value unseen(&graph, at->second);
        mask = mask.present() ? ops::add(mask, unseen) : unseen;
      }
      if (mask.present()) scores = ops::add(scores, mask);
      return ops::matmul(ops::softmax(scores), operand(2));
    });
    editor.redirect(node.outputs[0], y);
  }
  editor.finish();
  return graph;
}

Graph prepare(const Context& context, Graph graph, const onnx::ParameterValues& values, bool separates_attention) {
  graph = graph::freeze(std::move(graph), [&](const std::string& name) { return values(name).to_host(); });
  graph = exec::fold_on_oracle(context, graph::optimize(std::move(graph)));
  if (separates_attention) graph = separate_attention(std::move(graph));
  return keep_pooled_dimensions(join_bias(std::move(graph)));
}

}  // namespace tenon::quantize
