// SPDX-License-Identifier: Apache-2.0
#include "onnx/export/rules.h"

#include <unordered_map>

namespace tenon::onnx::exporting {
namespace {

std::unordered_map<tenon_op, const Rule*> make_table() {
  std::unordered_map<tenon_op, const Rule*> table;
#define TENON_ONNX_ADD(family) \
  for (const Rule& rule : family##_rules()) table[rule.op] = &rule;
  TENON_ONNX_EXPORT_RULES(TENON_ONNX_ADD)
#undef TENON_ONNX_ADD
  return table;
}

}  // namespace

const Rule* find_rule(tenon_op op) {
  static const std::unordered_map<tenon_op, const Rule*> table = make_table();
  const auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

const char* refusal_of(tenon_op op) {
  switch (op) {
    case TENON_OP_BatchNormTrain:
      return "it is of training, as it uses the statistics of the batch: export the graph of a prediction";
    case TENON_OP_ReluGrad:
    case TENON_OP_SigmoidGrad:
    case TENON_OP_TanhGrad:
    case TENON_OP_ConvWeightGrad:
    case TENON_OP_MaxPoolGrad:
    case TENON_OP_AveragePoolGrad:
    case TENON_OP_ResizeGrad:
    case TENON_OP_BatchNormTrainGrad:
    case TENON_OP_LayerNormalizationGrad:
    case TENON_OP_RMSNormalizationGrad:
    case TENON_OP_LRNGrad:
    case TENON_OP_RNNGrad:
    case TENON_OP_GRUGrad:
    case TENON_OP_LSTMGrad:
    case TENON_OP_AttentionGrad:
    case TENON_OP_SoftmaxGrad:
    case TENON_OP_LogSoftmaxGrad:
    case TENON_OP_SoftmaxCrossEntropyLossGrad:
      return "gradients are of training: export the graph of a prediction";
    case TENON_OP_RandomUniform:
    case TENON_OP_RandomNormal:
    case TENON_OP_RandomBernoulli:
    case TENON_OP_RandomPermutation:
    case TENON_OP_Dropout:
      return "its random numbers are those of Tenon's generator, which ONNX cannot express: export a graph without it";
    case TENON_OP_SgdStep:
    case TENON_OP_AdamStep:
    case TENON_OP_RmsPropStep:
    case TENON_OP_AmsGradStep:
    case TENON_OP_AdagradStep:
    case TENON_OP_AdadeltaStep:
      return "optimizer steps are of training: export the graph of a prediction";
    default:
      return find_rule(op) != nullptr ? nullptr : "ONNX has no such operator";
  }
}

void apply_same_op(Node& node) {
  node.output(0, node.op(op_name(node.info().op), node.inputs(), {}, node.output_dtype()));
}

}  // namespace tenon::onnx::exporting
