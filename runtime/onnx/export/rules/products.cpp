// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/products.cpp - matrix products.
#include "onnx/export/rules.h"

namespace tenon::onnx::exporting {
namespace {

void gemm(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_gemm>();
  std::vector<Term> operands = {node.input(0), node.input(1)};
  if (attributes.beta != 0 && node.has_input(2)) operands.push_back(node.input(2));
  node.output(0, node.op("Gemm", operands,
                         {number("alpha", attributes.alpha), number("beta", attributes.beta), integer("transA", attributes.trans_a),
                          integer("transB", attributes.trans_b)}));
}

}  // namespace

const std::vector<Rule>& products_rules() {
  static const std::vector<Rule> rules = {
      {TENON_OP_MatMul, apply_same_op},
      {TENON_OP_Gemm, gemm},
  };
  return rules;
}

}  // namespace tenon::onnx::exporting
