// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/recurrent.cpp - RNN, GRU and LSTM: operands, gates and results are ONNX's.
#include <array>

#include "onnx/export/rules.h"

namespace tenon::onnx::exporting {
namespace {

/// The results that ONNX has; what Tenon saves for gradients comes after them.
void recurrent(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_recurrent>();
  const tenon_op op = node.info().op;
  static constexpr std::array<const char*, 3> directions = {"forward", "reverse", "bidirectional"};
  std::vector<AttributeRecord> records = {text("direction", directions[attributes.direction]),
                                          integer("hidden_size", node.fixed(node.input_sizes(2)[2], "the hidden size"))};
  if (op == TENON_OP_RNN) {
    const std::size_t count = attributes.direction == TENON_DIRECTION_BOTH ? 2 : 1;
    records.push_back(texts("activations", {count, attributes.activation == TENON_RNN_RELU ? "Relu" : "Tanh"}));
  }
  if (op == TENON_OP_GRU) records.push_back(integer("linear_before_reset", attributes.linear_before_reset));
  std::vector<Term> operands = node.inputs();
  operands.resize(std::max<std::size_t>(operands.size(), 4));
  operands.insert(operands.begin() + 4, Term());  // sequence_lens
  std::vector<DType> results;
  for (std::size_t i = 0; i < (op == TENON_OP_LSTM ? 3 : 2); ++i) {
    results.push_back(node.needs_output(i) ? node.output_dtype(i) : DType::none);
  }
  const std::vector<Term> terms = node.op_with_results({op_name(op)}, operands, records, results);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].present()) node.output(i, terms[i]);
  }
}

}  // namespace

const std::vector<Rule>& recurrent_rules() {
  static const std::vector<Rule> rules = {
      {TENON_OP_RNN, recurrent},
      {TENON_OP_GRU, recurrent},
      {TENON_OP_LSTM, recurrent},
  };
  return rules;
}

}  // namespace tenon::onnx::exporting
