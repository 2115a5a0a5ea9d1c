// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/attention.cpp - attention, softmax and the loss of class scores.
#include <array>
#include <limits>

#include "onnx/export/rules.h"

namespace tenon::onnx::exporting {
namespace {

void softmax(Node& node) {
  const std::int64_t axis = node.attributes<tenon_attributes_axis>().axis;
  node.output(0, node.op(op_name(node.info().op), {node.input(0)}, {integer("axis", axis)}));
}

/// bool (s, l): whether query s sees key l.
Tensor causal_mask(std::int64_t s, std::int64_t l) {
  Tensor mask = Tensor::zeros(DType::boolean, {s, l});
  auto* element = static_cast<bool*>(mask.raw());
  for (std::int64_t i = 0; i < s; ++i) {
    for (std::int64_t j = 0; j < l; ++j) *element++ = j <= i;
  }
  return mask;
}

/// softmax(scale q k' + mask) v. The H / G heads of q that share one of k and v are rows of one product.
void attention_by_products(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_attention>();
  const Sizes q_sizes = node.input_sizes(0), k_sizes = node.input_sizes(1), v_sizes = node.input_sizes(2), y_sizes = node.output_sizes();
  const std::vector<std::int64_t> fixed = node.fixed({q_sizes[1], q_sizes[2], k_sizes[1], k_sizes[2]}, "the number of heads or steps");
  const std::int64_t heads = fixed[0], steps = fixed[1], groups = fixed[2], keys = fixed[3];
  const bool shared = heads != groups;
  const Size rows = {shared ? heads / groups * steps : steps};
  const auto grouped = [&](const Term& term, const Size& columns) {
    return shared ? node.reshape(term, {q_sizes[0], {groups}, rows, columns}) : term;
  };
  const auto separate = [&](const Term& term, const Size& columns) {
    return shared ? node.reshape(term, {q_sizes[0], {heads}, {steps}, columns}) : term;
  };
  const Term q = node.wide_input(0);
  const Term scaled = node.op("Mul", {q, node.scalar(q.dtype, attributes.scale)});
  const Term product = node.op("MatMul", {grouped(scaled, q_sizes[3]), node.transpose(node.wide_input(1), {0, 1, 3, 2})});
  Term scores = separate(product, {keys});
  if (node.has_input(3)) scores = node.op("Add", {scores, node.wide_input(3)});
  if (attributes.causal != 0) {
    const Term unseen = node.scalar(q.dtype, -std::numeric_limits<double>::infinity());
    scores = node.op("Where", {node.constant(causal_mask(steps, keys)), scores, unseen}, {}, q.dtype);
  }
  const Term weights = node.op("Softmax", {scores}, {integer("axis", -1)});
  node.output(0, separate(node.op("MatMul", {grouped(weights, {keys}), node.wide_input(2)}), y_sizes[3]));
}

/// From opset 23 on one node; not in f64, whose scale f32 does not hold.
void attention(Node& node) {
  if (node.opset() < 23 || node.output_dtype() == DType::f64) return attention_by_products(node);
  const auto& attributes = node.attributes<tenon_attributes_attention>();
  node.output(0, node.op("Attention", node.inputs(), {integer("is_causal", attributes.causal), number("scale", attributes.scale)}));
}

void cross_entropy(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_cross_entropy>();
  static constexpr std::array<const char*, 3> reductions = {"none", "mean", "sum"};
  std::vector<AttributeRecord> records = {text("reduction", reductions[attributes.reduction])};
  if (attributes.has_ignore_index != 0) records.push_back(integer("ignore_index", attributes.ignore_index));
  const DType dtype = node.output_dtype();
  const std::vector<Term> results =
      node.op_with_results({"SoftmaxCrossEntropyLoss"}, node.inputs(), records, {dtype, node.needs_output(1) ? dtype : DType::none});
  node.output(0, results[0]);
  if (results[1].present()) node.output(1, results[1]);
}

}  // namespace

const std::vector<Rule>& attention_rules() {
  static const std::vector<Rule> rules = {
      {TENON_OP_Attention, attention},
      {TENON_OP_Softmax, softmax},
      {TENON_OP_LogSoftmax, softmax},
      {TENON_OP_SoftmaxCrossEntropyLoss, cross_entropy},
  };
  return rules;
}

}  // namespace tenon::onnx::exporting
