// SPDX-License-Identifier: Apache-2.0
// onnx/rules/softmax.cpp - Softmax, LogSoftmax, Hardmax, and the losses of class labels.
#include <fmt/core.h>

#include <optional>
#include <string_view>
#include <vector>

#include "onnx/rules.h"
#include "onnx/rules/dtypes.h"

namespace tenon::onnx {
namespace {

using Function = Value (*)(Value x, std::int64_t axis);

/// 1 at the first maximum, 0 elsewhere.
Value hardmax(Value x, std::int64_t axis) {
  return ops::one_hot(ops::arg_max(x, axis), x.shape()[static_cast<std::size_t>(axis)], x.dtype(), 0, 1, axis);
}

template <Function f>
void along_axis(Node& node) {
  const Value x = node.input(0);
  const std::int64_t axis = node.resolve_axis(node.integer("axis", -1), node.rank(0));
  node.output(0, x.shape().count() == 0 ? x : f(x, axis));
}

/// Before version 13: over all dimensions from `axis` on together.
template <Function f>
void along_rest(Node& node) {
  const Value x = node.input(0);
  const std::int64_t axis = node.resolve_axis(node.integer("axis", 1), node.rank(0));
  if (x.shape().count() == 0) return node.output(0, x);
  if (axis + 1 == node.rank(0)) return node.output(0, f(x, axis));
  node.output(0, ops::reshape(f(ops::flatten(x, axis), 1), x.shape()));
}

ops::Reduction reduction_of(const Node& node) {
  const std::string_view text = node.text("reduction", "mean");
  if (text == "none") return ops::Reduction::none;
  if (text == "sum") return ops::Reduction::sum;
  if (text != "mean") node.fail(fmt::format("expected a reduction of none, sum or mean, got \"{}\"", text));
  return ops::Reduction::mean;
}

std::optional<std::int64_t> ignore_index_of(const Node& node) {
  return node.has("ignore_index") ? std::optional(node.integer("ignore_index")) : std::nullopt;
}

/// -weights[label] log_prob[label] for log_prob (N, C, d...) and labels (N, d...), reduced; the mean is that of the weights of all labels
/// that are not ignored.
Value label_loss(Node& node, Value log_prob, Value labels, Value weights) {
  const Shape shape = log_prob.shape();
  if (shape.rank() < 2) node.fail(fmt::format("expected scores (N, C, d...), got {}", shape.str()));
  Shape column = shape, expected{shape[0]};
  column.set(1, 1);
  for (std::size_t i = 2; i < shape.rank(); ++i) expected.push_back(shape[i]);
  if (labels.shape() != expected) {
    node.fail(fmt::format("expected labels {} for scores {}, got {}", expected.str(), shape.str(), labels.shape().str()));
  }
  if (weights.present() && weights.shape() != Shape{shape[1]}) {
    node.fail(fmt::format("expected weights of {} classes, got {}", shape[1], weights.shape().str()));
  }
  labels = cast_to(labels, DType::i64);
  Value is_counted;
  if (const std::optional<std::int64_t> ignored = ignore_index_of(node)) {
    is_counted = ops::not_equal(labels, node.constant(Tensor::scalar(*ignored)));
    labels = ops::where(is_counted, labels, node.scalar(DType::i64, 0));
  }
  Value loss = ops::neg(ops::reshape(ops::gather_elements(log_prob, ops::reshape(labels, column), 1), expected));
  Value weight = weights.present() ? ops::gather(weights, labels) : Value();
  if (is_counted.present()) {
    const Value zero = node.scalar(loss.dtype(), 0);
    loss = ops::where(is_counted, loss, zero);  // also where the ignored one is not finite
    weight = weight.present() ? ops::where(is_counted, weight, zero) : ops::cast(is_counted, loss.dtype());
  }
  if (weights.present()) loss = ops::mul(loss, weight);
  const ops::Reduction reduction = reduction_of(node);
  if (reduction == ops::Reduction::none) return loss;
  if (reduction == ops::Reduction::sum) return ops::reduce_sum(loss);
  return weight.present() ? ops::div(ops::reduce_sum(loss), ops::reduce_sum(weight)) : ops::reduce_mean(loss);
}

Value weights_of(Node& node, DType dtype) {
  return node.has_input(2) ? cast_to(node.input(2), dtype) : Value();
}

void negative_log_likelihood_loss(Node& node) {
  const Value log_prob = node.input(0);
  node.output(0, label_loss(node, log_prob, node.input(1), weights_of(node, log_prob.dtype())));
}

void softmax_cross_entropy_loss(Node& node) {
  const Value scores = node.input(0), labels = node.input(1), weights = weights_of(node, scores.dtype());
  if (scores.shape().rank() < 2) node.fail(fmt::format("expected scores (N, C, d...), got {}", scores.shape().str()));
  if (weights.present()) {
    // The op has no gradient with respect to weights, which may be parameters.
    const Value log_prob = ops::log_softmax(scores, 1);
    node.output(0, label_loss(node, log_prob, labels, weights));
    if (node.needs_output(1)) node.output(1, log_prob);
    return;
  }
  const std::optional<std::int64_t> ignored = ignore_index_of(node);
  tenon_attributes_cross_entropy attributes{};
  attributes.reduction = static_cast<std::uint32_t>(reduction_of(node));
  attributes.has_ignore_index = ignored ? 1 : 0;
  attributes.ignore_index = ignored.value_or(0);
  const std::vector<Value> results = node.graph().apply(TENON_OP_SoftmaxCrossEntropyLoss, {scores, labels}, Attributes::of(attributes));
  node.output(0, results[0]);
  if (node.needs_output(1)) node.output(1, results[1]);
}

}  // namespace

const std::vector<Rule>& softmax_rules() {
  static const std::vector<Rule> rules = {
      {"Hardmax", 1, along_rest<hardmax>},
      {"Hardmax", 13, along_axis<hardmax>},
      {"LogSoftmax", 1, along_rest<ops::log_softmax>},
      {"LogSoftmax", 13, along_axis<ops::log_softmax>},
      {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood_loss},
      {"Softmax", 1, along_rest<ops::softmax>},
      {"Softmax", 13, along_axis<ops::softmax>},
      {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy_loss},
  };
  return rules;
}

}  // namespace tenon::onnx
