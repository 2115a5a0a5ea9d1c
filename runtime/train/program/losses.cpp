// SPDX-License-Identifier: Apache-2.0
// The losses, and their table.
#include <fmt/core.h>

#include <tenon/error.h>

#include "train/program/objective.h"

namespace tenon::train {
namespace {

/// The weights of the classes, to be multiplied with scores whose classes are `axis`; absent if all are 1.
Value weights_of_classes(const ObjectiveInputs& in, std::int64_t axis) {
  return in.loss.class_weights.empty() ? Value() : class_weights(in.loss, in.scores, axis);
}

/// t (1 - s) + s / classes, with s the label smoothing.
Value smoothed(Value target, double smoothing, std::int64_t classes) {
  return smoothing == 0 ? target : ops::add(ops::mul(target, 1 - smoothing), smoothing / static_cast<double>(classes));
}

/// Softmax and cross-entropy are one op: a separate softmax could round a probability to 0. Smoothing adds the mean of the losses that all
/// classes would have as label, as in PyTorch.
Value sparse_categorical_crossentropy(const ObjectiveInputs& in, ops::Reduction reduction) {
  const std::int64_t classes = in.scores.shape()[1];
  const Value weights = weights_of_classes(in, 1);
  const double smoothing = in.loss.label_smoothing;
  ops::CrossEntropyOptions options;
  options.reduction = smoothing == 0 ? reduction : ops::Reduction::none;
  options.ignore_index = in.loss.ignore_index;
  if (weights.present()) options.weights = ops::reshape(weights, {classes});
  const Value of_labels = ops::softmax_cross_entropy(in.scores, in.y, options);
  if (smoothing == 0) return of_labels;
  const Value log_p = ops::log_softmax(in.scores, 1);
  const Value of_all = ops::neg(ops::reduce_sum(weights.present() ? ops::mul(log_p, weights) : log_p, {1}));
  const Value losses = ops::add(ops::mul(of_labels, 1 - smoothing), ops::mul(of_all, smoothing / static_cast<double>(classes)));
  return reduction == ops::Reduction::none ? losses : weighted_mean(losses, in.weights, in.divisors);
}

Value categorical_crossentropy(const ObjectiveInputs& in, ops::Reduction reduction) {
  const Shape& shape = in.target.shape();
  const Value weights = weights_of_classes(in, static_cast<std::int64_t>(shape.rank()) - 1);
  const Value target = smoothed(in.target, in.loss.label_smoothing, shape[shape.rank() - 1]);
  return ops::categorical_cross_entropy(in.scores, weights.present() ? ops::mul(target, weights) : target, true, reduction);
}

/// Sigmoid and cross-entropy are one function: a separate sigmoid rounds to 0 or 1, beyond which its gradient is 0.
Value binary_crossentropy(const ObjectiveInputs& in, ops::Reduction reduction) {
  const bool sigmoid = in.forward.final_activation == Activation::sigmoid && !in.loss.from_logits;
  const bool logits = sigmoid || in.loss.from_logits;
  const Value y = sigmoid ? in.forward.logits : in.forward.output, target = smoothed(in.target, in.loss.label_smoothing, 2);
  const double positive = in.loss.positive_weight;
  if (positive == 1) return ops::binary_cross_entropy(y, target, logits, reduction);
  // positive * t * -log p + (1 - t) * -log(1 - p); from logits: -log p = softplus(-y) and -log(1 - p) = softplus(y)
  const Value p = logits ? y : ops::clip(y, 1e-7, 1 - 1e-7);
  const Value cost_of_one = logits ? ops::softplus(-p) : -ops::log(p);
  const Value cost_of_zero = logits ? ops::softplus(p) : -ops::log(1.0 - p);
  const Value losses = target * positive * cost_of_one + (1.0 - target) * cost_of_zero;
  return reduction == ops::Reduction::none ? losses : ops::reduce_mean(losses);
}

Value kl_divergence(const ObjectiveInputs& in, ops::Reduction reduction) {
  const Shape& shape = in.target.shape();
  const Value target = smoothed(in.target, in.loss.label_smoothing, shape[shape.rank() - 1]);
  return ops::kl_divergence(ops::log_softmax(in.scores), target, true, reduction);
}

/// Losses that compare output and target element by element.
template <Value (*function)(Value, Value, ops::Reduction)>
Value of_values(const ObjectiveInputs& in, ops::Reduction reduction) {
  return function(in.forward.output, in.target, reduction);
}

/// The loss of a sample is a sum.
Value half_mse(const ObjectiveInputs& in, ops::Reduction reduction) {
  const Value losses = ops::half_mse(in.forward.output, in.target, reduction);
  const std::size_t rank = losses.shape().rank();
  if (reduction == ops::Reduction::mean || rank < 2) return losses;
  std::vector<std::int64_t> axes;
  for (std::size_t i = 1; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return ops::reduce_sum(losses, axes);
}

Value huber(const ObjectiveInputs& in, ops::Reduction reduction) {
  return ops::huber(in.forward.output, in.target, in.loss.delta, reduction);
}

Value nll(const ObjectiveInputs& in, ops::Reduction reduction) {
  return ops::nll(in.scores, in.y, in.loss.ignore_index, reduction);
}

/// Each sample's loss is divided by the number of its labels, as in PyTorch's mean.
Value ctc(const ObjectiveInputs& in, ops::Reduction reduction) {
  Graph& graph = in.y.graph();
  const Value y = in.y.dtype() == DType::i64 ? in.y : ops::cast(in.y, DType::i64);
  const auto number = [&](std::int64_t value) { return graph.constant(Tensor::scalar(value)); };
  const Value counts = ops::logical_and(ops::greater_equal(y, number(0)), ops::not_equal(y, number(in.loss.blank)));
  const Value lengths = ops::reduce_sum(ops::cast(counts, DType::i64), {1});
  const Value losses =
      ops::ctc_loss(ops::log_softmax(in.scores), y, {}, lengths, {.blank = in.loss.blank, .reduction = ops::Reduction::none});
  const Value means = losses / ops::maximum(ops::cast(lengths, losses.dtype()), 1.0);
  return reduction == ops::Reduction::none ? means : ops::reduce_mean(means);
}

Value custom(const ObjectiveInputs& in, ops::Reduction reduction) {
  const Value losses = in.loss.function(in.forward.output, in.target);
  const std::int64_t batch = in.forward.output.shape()[0];
  const auto fail = [&](const std::string& got) {
    throw Error(
        fmt::format("loss {}: expected its function to return floating-point losses ({}, ...), one or more for each sample, or their "
                    "mean as a scalar, got {}",
                    in.loss.str(), batch, got));
  };
  if (!losses.present()) fail("an absent value");
  const Shape shape = losses.shape();
  if (!is_floating(losses.dtype()) || (shape.rank() > 0 && shape[0] != batch)) fail(name_of(losses.dtype()) + shape.str());
  if (reduction == ops::Reduction::mean) return shape.rank() == 0 ? losses : ops::reduce_mean(losses);
  if (shape.rank() > 0) return losses;
  throw Error(fmt::format("loss {}: its function returns a scalar; with sample weights it returns the losses of the samples, ({}, ...)",
                          in.loss.str(), batch));
}

const LossRule rules[] = {
    {Loss::sparse_categorical_crossentropy, "sparse_categorical_crossentropy", nullptr, Targets::labels, true, true, true, true,
     sparse_categorical_crossentropy},
    {Loss::categorical_crossentropy, "categorical_crossentropy", nullptr, Targets::one_hot, true, true, false, true,
     categorical_crossentropy},
    {Loss::binary_crossentropy, "binary_crossentropy", "bce", Targets::binary, true, true, false, false, binary_crossentropy},
    {Loss::kl_divergence, "kl_divergence", "kld", Targets::one_hot, true, true, false, false, kl_divergence},
    {Loss::nll, "nll", "negative_log_likelihood", Targets::labels, false, false, true, false, nll},
    {Loss::mse, "mse", "mean_squared_error", Targets::values, false, false, false, false, of_values<ops::mse>},
    {Loss::half_mse, "half_mse", "euclidean", Targets::values, false, false, false, false, half_mse},
    {Loss::mae, "mae", "mean_absolute_error", Targets::values, false, false, false, false, of_values<ops::mae>},
    {Loss::huber, "huber", nullptr, Targets::values, false, false, false, false, huber},
    {Loss::neg_mean_prod, "neg_mean_prod", nullptr, Targets::values, false, false, false, false, of_values<ops::neg_mean_prod>},
    {Loss::ctc, "ctc", nullptr, Targets::sequences, true, false, false, false, ctc},
    {Loss::custom, "custom", nullptr, Targets::any, false, false, false, false, custom},
};

}  // namespace

std::span<const LossRule> loss_rules() {
  return rules;
}
const LossRule& rule_of(Loss loss) {
  for (const LossRule& rule : rules) {
    if (rule.loss == loss) return rule;
  }
  throw Error("a loss without a row in train/program/losses.cpp");
}

}  // namespace tenon::train

namespace tenon {

const char* name_of(Loss loss) {
  return train::rule_of(loss).name;
}
std::string LossDefinition::str() const {
  return loss == Loss::custom && !name.empty() ? name : name_of(loss);
}

}  // namespace tenon
