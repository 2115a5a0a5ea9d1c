// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/reduce.cpp - reductions over axes, and positions of extremes.
#include "onnx/export/rules.h"

namespace tenon::onnx::exporting {
namespace {

/// Whether the axes are all spatial ones of an image (n, c, d...).
bool are_spatial(const std::vector<std::int64_t>& axes, std::size_t rank) {
  if (rank < 3 || axes.size() + 2 != rank) return false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<std::int64_t>(i) + 2) return false;
  }
  return true;
}

/// The axes are an operand of ReduceSum, and from opset 18 on of the others; without axes, those of a scalar, ONNX reduces all.
void reduce(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_axes>();
  const std::vector<std::int64_t> axes(attributes.axes, attributes.axes + attributes.count);
  if (node.info().op == TENON_OP_ReduceMean && attributes.keepdims != 0 && node.input(0).dtype == DType::f32 &&
      are_spatial(axes, node.rank(0)))
    return node.output(0, node.op("GlobalAveragePool", {node.input(0)}));  // which runtimes have kernels for in integers
  std::vector<Term> operands = {node.input(0)};
  std::vector<AttributeRecord> records = {integer("keepdims", attributes.keepdims)};
  if (!axes.empty()) {
    if (node.opset() >= 18 || node.info().op == TENON_OP_ReduceSum) {
      operands.push_back(node.integers(axes));
    } else {
      records.push_back(integers("axes", axes));
    }
  }
  node.output(0, node.op(op_name(node.info().op), operands, records));
}

void arg_reduce(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_axis>();
  node.output(0, node.op(op_name(node.info().op), {node.input(0)},
                         {integer("axis", attributes.axis), integer("keepdims", attributes.keepdims)}, DType::i64));
}

}  // namespace

const std::vector<Rule>& reduce_rules() {
  static const std::vector<Rule> rules = {
      {TENON_OP_ReduceSum, reduce},       {TENON_OP_ReduceMean, reduce}, {TENON_OP_ReduceMax, reduce},  {TENON_OP_ReduceMin, reduce},
      {TENON_OP_ReduceProd, reduce},      {TENON_OP_ReduceL1, reduce},   {TENON_OP_ReduceL2, reduce},   {TENON_OP_ReduceSumSquare, reduce},
      {TENON_OP_ReduceLogSumExp, reduce}, {TENON_OP_ArgMax, arg_reduce}, {TENON_OP_ArgMin, arg_reduce},
  };
  return rules;
}

}  // namespace tenon::onnx::exporting
