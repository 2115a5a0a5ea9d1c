// SPDX-License-Identifier: Apache-2.0
// ops/softmax_cross_entropy.cpp - softmax cross-entropy of scores and integer labels.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

constexpr std::size_t log_prob_output = 1;

void normalise(Inference& at) {
  auto attributes = at.attributes.as<tenon_attributes_cross_entropy>();
  if (attributes.reduction > TENON_REDUCTION_SUM)
    at.fail(fmt::format("reduction is {}, expected none (0), mean (1) or sum (2)", attributes.reduction));
  at.expect_flag(attributes.has_ignore_index, "has_ignore_index");
  if (attributes.has_ignore_index == 0) attributes.ignore_index = 0;
  at.attributes = Attributes::of(attributes);
}

/// Checks scores (N, C, ...), labels (N, ...) and weights (C). Returns the shape of the labels.
Shape check_operands(Inference& at, std::size_t scores, std::size_t labels, std::size_t weights) {
  at.expect_floating(scores);
  if (at.shape(scores).rank() < 2) at.fail(fmt::format("expected scores of shape (N, classes, ...), got {}", at.str(scores)));
  if (at.dtype(labels) != DType::i32 && at.dtype(labels) != DType::i64)
    at.fail(fmt::format("expected labels of i32 or i64, got {}", at.str(labels)));
  Shape expected;
  for (std::size_t i = 0; i < at.shape(scores).rank(); ++i) {
    if (i != 1) expected.push_back(at.shape(scores)[i]);
  }
  if (at.shape(labels) != expected)
    at.fail(fmt::format("expected labels of shape {} for {}, got {}", expected.str(), at.str(scores), at.str(labels)));
  if (at.has(weights)) {
    at.expect_same_dtype(scores, weights);
    const Shape classes{at.shape(scores)[1]};
    if (at.shape(weights) != classes)
      at.fail(fmt::format("expected weights of shape {} for {}, got {}", classes.str(), at.str(scores), at.str(weights)));
  }
  return expected;
}

Shape loss_shape(const Inference& at, const Shape& labels) {
  return at.attributes.as<tenon_attributes_cross_entropy>().reduction == TENON_REDUCTION_NONE ? labels : Shape();
}

void infer(Inference& at) {
  at.expect_inputs(2, 3);
  normalise(at);
  const Shape labels = check_operands(at, 0, 1, 2);
  at.output(at.dtype(0), loss_shape(at, labels));
  at.output(at.dtype(0), at.shape(0));
}

void infer_gradient(Inference& at) {
  at.expect_inputs(3, 4);
  normalise(at);
  const Shape labels = check_operands(at, 1, 2, 3);
  at.expect_same_dtype(0, 1);
  const Shape loss = loss_shape(at, labels);
  if (at.shape(0) != loss) at.fail(fmt::format("expected dloss of shape {}, got {}", loss.str(), at.str(0)));
  at.output(at.dtype(1), at.shape(1));
}

void gradient(Gradient& at) {
  if (at.needs(2)) {
    throw Error(Status::unsupported, fmt::format("gradients: SoftmaxCrossEntropyLoss '{}' has none with respect to its weights '{}'",
                                                 at.output(0).name(), at.input(2).name()));
  }
  const Value log_prob = at.output(log_prob_output);
  Value dscores;
  if (at.dy(0).present()) {
    std::vector<Value> operands{at.dy(0), log_prob, at.input(1)};
    if (at.input(2).present()) operands.push_back(at.input(2));
    dscores = apply_op(TENON_OP_SoftmaxCrossEntropyLossGrad, operands, at.attributes);
  }
  if (at.dy(log_prob_output).present()) {
    tenon_attributes_axis classes{};
    classes.axis = 1;
    const Value part = apply_op(TENON_OP_LogSoftmaxGrad, {at.dy(log_prob_output), log_prob}, Attributes::of(classes));
    dscores = dscores.present() ? ops::add(dscores, part) : part;
  }
  at.set(0, dscores);
}

}  // namespace

extern const OpRules rules_softmax_cross_entropy, rules_softmax_cross_entropy_grad;
const OpRules rules_softmax_cross_entropy{
    "loss = -weights[label] log_prob[label], reduced; log_prob = log softmax(scores) over the classes. The mean divides by the sum of the "
    "weights of the labels that are not ignored. Ignored labels have no loss; a label that is neither in [0, C) nor ignored is an error.",
    infer,
    PrecisionClass::fp32,
    per_element<4>,
    gradient,
    1u << log_prob_output};
const OpRules rules_softmax_cross_entropy_grad{
    "dscores = dloss weights[label] (exp(log_prob) - onehot(label)), divided as in the mean; 0 for ignored labels.", infer_gradient,
    PrecisionClass::fp32, per_element<4>};

}  // namespace graph

namespace ops {

Value softmax_cross_entropy(Value scores, Value labels, const CrossEntropyOptions& options) {
  tenon_attributes_cross_entropy attributes{};
  attributes.reduction = static_cast<std::uint32_t>(options.reduction);
  attributes.has_ignore_index = options.ignore_index ? 1 : 0;
  attributes.ignore_index = options.ignore_index.value_or(0);
  std::vector<Value> operands{scores, labels};
  if (options.weights.present()) operands.push_back(options.weights);
  return graph::apply_op(TENON_OP_SoftmaxCrossEntropyLoss, operands, Attributes::of(attributes));
}

}  // namespace ops
}  // namespace tenon
