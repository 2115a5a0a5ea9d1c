// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/normalization.cpp - batch, layer, RMS and local response normalisation.
#include <numeric>
#include <utility>

#include "onnx/export/rules.h"

namespace tenon::onnx::exporting {
namespace {

/// ONNX has the channels at axis 1.
void batch_norm(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_batch_norm>();
  const std::vector<AttributeRecord> records = {number("epsilon", attributes.epsilon)};
  const Sizes sizes = node.input_sizes(0);
  std::vector<Term> operands = node.inputs();
  if (attributes.axis == 1) return node.output(0, node.op("BatchNormalization", operands, records));
  if (sizes.size() == 1) {
    operands[0] = node.reshape(operands[0], {{1}, sizes[0]});
    return node.output(0, node.reshape(node.op("BatchNormalization", operands, records), sizes));
  }
  std::vector<std::int64_t> swap(sizes.size());
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap[1], swap[static_cast<std::size_t>(attributes.axis)]);
  operands[0] = node.transpose(operands[0], swap);
  node.output(0, node.transpose(node.op("BatchNormalization", operands, records), swap));
}

/// The mean over the dimensions from `axis` on, which are kept.
Term mean(Node& node, const Term& x, std::int64_t axis) {
  std::vector<std::int64_t> axes(node.rank(0) - static_cast<std::size_t>(axis));
  std::iota(axes.begin(), axes.end(), axis);
  if (node.opset() >= 18) return node.op("ReduceMean", {x, node.integers(axes)});
  return node.op("ReduceMean", {x}, {integers("axes", axes)});
}

/// x / sqrt(mean(x^2) + epsilon) scale + bias in the dtype of x; sets result `inverse` if it is read.
Term scaled_by_rms(Node& node, const Term& x, std::size_t inverse) {
  const auto& attributes = node.attributes<tenon_attributes_layer_norm>();
  const Term square = mean(node, node.op("Mul", {x, x}), attributes.axis);
  const Term rms = node.op("Sqrt", {node.op("Add", {square, node.scalar(x.dtype, attributes.epsilon)})});
  if (node.needs_output(inverse)) node.output(inverse, node.op("Reciprocal", {rms}));
  Term y = node.op("Div", {x, rms});
  if (node.has_input(1)) y = node.op("Mul", {y, node.wide_input(1)});
  if (node.has_input(2)) y = node.op("Add", {y, node.wide_input(2)});
  return y;
}

/// Ones in the shape of the scale, which ONNX requires.
Term scale(Node& node) {
  if (node.has_input(1)) return node.input(1);
  const Sizes sizes = node.input_sizes(0);
  const auto axis = static_cast<std::ptrdiff_t>(node.attributes<tenon_attributes_layer_norm>().axis);
  const std::vector<std::int64_t> counts = node.fixed({sizes.begin() + axis, sizes.end()}, "a normalised size");
  return node.constant(Tensor::full(node.output_dtype(), Shape(std::span(counts)), 1));
}

/// ONNX computes the statistics in f32, so those of f64 are written as separate nodes.
void layer_norm(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_layer_norm>();
  const DType dtype = node.output_dtype();
  if (dtype == DType::f64) {
    const Term x = node.input(0), centre = mean(node, x, attributes.axis);
    if (node.needs_output(1)) node.output(1, centre);
    return node.output(0, scaled_by_rms(node, node.op("Sub", {x, centre}), 2));
  }
  const auto statistic = [&](std::size_t i) { return node.needs_output(i) ? DType::f32 : DType::none; };
  const std::vector<Term> results =
      node.op_with_results({"LayerNormalization"}, {node.input(0), scale(node), node.input(2)},
                           {integer("axis", attributes.axis), number("epsilon", attributes.epsilon)}, {dtype, statistic(1), statistic(2)});
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].present()) node.output(i, results[i]);
  }
}

/// Opset 23 has it, with sums in f32 and without the inverse as a result.
void rms_norm(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_layer_norm>();
  if (node.opset() < 23 || node.output_dtype() == DType::f64 || node.needs_output(1)) {
    return node.output(0, scaled_by_rms(node, node.wide_input(0), 1));
  }
  node.output(0, node.op("RMSNormalization", {node.input(0), scale(node)},
                         {integer("axis", attributes.axis), number("epsilon", attributes.epsilon)}));
}

void lrn(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_lrn>();
  node.output(0, node.op("LRN", {node.input(0)},
                         {integer("size", attributes.size), number("alpha", attributes.alpha), number("beta", attributes.beta),
                          number("bias", attributes.bias)}));
}

}  // namespace

const std::vector<Rule>& normalization_rules() {
  static const std::vector<Rule> rules = {
      {TENON_OP_BatchNormalization, batch_norm},
      {TENON_OP_LayerNormalization, layer_norm},
      {TENON_OP_RMSNormalization, rms_norm},
      {TENON_OP_LRN, lrn},
  };
  return rules;
}

}  // namespace tenon::onnx::exporting
