// SPDX-License-Identifier: Apache-2.0
#include "train/objective.h"

#include <fmt/core.h>

#include <algorithm>

namespace tenon::train {
namespace {

/// The weights of the classes, to be multiplied with scores whose classes are `axis`; absent if all are 1.
Value class_weights(const ObjectiveInputs& in, std::int64_t axis) {
  const std::vector<double>& weights = in.loss.class_weights;
  if (weights.empty()) return {};
  Shape shape;
  for (std::size_t i = 0; i < in.scores.shape().rank(); ++i) shape.push_back(1);
  shape.set(static_cast<std::size_t>(axis), static_cast<std::int64_t>(weights.size()));
  Tensor values = Tensor::empty(DType::f64, shape);
  std::copy(weights.begin(), weights.end(), values.data<double>());
  return ops::cast(in.scores.graph().constant(values), in.scores.dtype());
}

/// t (1 - s) + s / classes, with s the label smoothing.
Value smoothed(Value target, double smoothing, std::int64_t classes) {
  return smoothing == 0 ? target : ops::add(ops::mul(target, 1 - smoothing), smoothing / static_cast<double>(classes));
}

/// Softmax and cross-entropy are one op: a separate softmax could round a probability to 0. Smoothing adds the mean of the losses that all
/// classes would have as label, as in PyTorch.
Value sparse_categorical_crossentropy(const ObjectiveInputs& in) {
  const std::int64_t classes = in.scores.shape()[1];
  const Value weights = class_weights(in, 1);
  ops::CrossEntropyOptions options;
  options.ignore_index = in.loss.ignore_index;
  if (weights.present()) options.weights = ops::reshape(weights, {classes});
  const Value of_labels = ops::softmax_cross_entropy(in.scores, in.y, options);
  const double smoothing = in.loss.label_smoothing;
  if (smoothing == 0) return of_labels;

  const auto weighted = [&](Value x) { return weights.present() ? ops::mul(x, weights) : x; };
  const auto sum = [&](Value x) { return ops::reduce_sum(in.valid.present() ? ops::mul(x, in.valid) : x); };
  const Value of_all = sum(ops::neg(ops::reduce_sum(weighted(ops::log_softmax(in.scores, 1)), {1})));
  const Value count = weights.present() ? sum(ops::reduce_sum(weighted(ops::one_hot(in.y, classes, in.scores.dtype(), 0, 1, 1)), {1}))
                      : in.weight.present()
                          ? in.weight
                          : in.scores.graph().constant(Tensor::full(in.scores.dtype(), {}, static_cast<double>(in.y.shape().count())));
  return ops::add(ops::mul(of_labels, 1 - smoothing), ops::mul(ops::div(of_all, count), smoothing / static_cast<double>(classes)));
}

Value categorical_crossentropy(const ObjectiveInputs& in) {
  const Shape& shape = in.target.shape();
  const Value weights = class_weights(in, static_cast<std::int64_t>(shape.rank()) - 1);
  const Value target = smoothed(in.target, in.loss.label_smoothing, shape[shape.rank() - 1]);
  return ops::categorical_cross_entropy(in.scores, weights.present() ? ops::mul(target, weights) : target, true);
}

/// Sigmoid and cross-entropy are one function: a separate sigmoid rounds to 0 or 1, beyond which its gradient is 0.
Value binary_crossentropy(const ObjectiveInputs& in) {
  const bool sigmoid = in.forward.final_activation == Activation::sigmoid && !in.loss.from_logits;
  const bool logits = sigmoid || in.loss.from_logits;
  const Value y = sigmoid ? in.forward.logits : in.forward.output, target = smoothed(in.target, in.loss.label_smoothing, 2);
  const double positive = in.loss.positive_weight;
  if (positive == 1) return ops::binary_cross_entropy(y, target, logits);
  // positive * t * -log p + (1 - t) * -log(1 - p); from logits: -log p = softplus(-y) and -log(1 - p) = softplus(y)
  const Value p = logits ? y : ops::clip(y, 1e-7, 1 - 1e-7);
  const auto one_minus = [](Value x) { return ops::add(ops::neg(x), 1.0); };
  const Value cost_of_one = logits ? ops::softplus(ops::neg(p)) : ops::neg(ops::log(p));
  const Value cost_of_zero = logits ? ops::softplus(p) : ops::neg(ops::log(one_minus(p)));
  return ops::reduce_mean(ops::add(ops::mul(ops::mul(target, positive), cost_of_one), ops::mul(one_minus(target), cost_of_zero)));
}

Value kl_divergence(const ObjectiveInputs& in) {
  const Shape& shape = in.target.shape();
  const Value target = smoothed(in.target, in.loss.label_smoothing, shape[shape.rank() - 1]);
  return ops::kl_divergence(ops::log_softmax(in.scores), target, true);
}

/// Losses that compare output and target element by element.
template <Value (*function)(Value, Value)>
Value of_values(const ObjectiveInputs& in) {
  return function(in.forward.output, in.target);
}

Value huber(const ObjectiveInputs& in) {
  return ops::huber(in.forward.output, in.target, in.loss.delta);
}

Value nll(const ObjectiveInputs& in) {
  return ops::nll(in.scores, in.y, in.loss.ignore_index);
}

const LossRule rules[] = {
    {Loss::sparse_categorical_crossentropy, "sparse_categorical_crossentropy", nullptr, Targets::labels, true, true, true,
     sparse_categorical_crossentropy},
    {Loss::categorical_crossentropy, "categorical_crossentropy", nullptr, Targets::one_hot, true, false, true, categorical_crossentropy},
    {Loss::binary_crossentropy, "binary_crossentropy", "bce", Targets::binary, true, false, false, binary_crossentropy},
    {Loss::kl_divergence, "kl_divergence", "kld", Targets::one_hot, true, false, false, kl_divergence},
    {Loss::nll, "nll", "negative_log_likelihood", Targets::labels, false, true, false, nll},
    {Loss::mse, "mse", "mean_squared_error", Targets::values, false, false, false, of_values<ops::mse>},
    {Loss::half_mse, "half_mse", "euclidean", Targets::values, false, false, false, of_values<ops::half_mse>},
    {Loss::mae, "mae", "mean_absolute_error", Targets::values, false, false, false, of_values<ops::mae>},
    {Loss::huber, "huber", nullptr, Targets::values, false, false, false, huber},
    {Loss::neg_mean_prod, "neg_mean_prod", nullptr, Targets::values, false, false, false, of_values<ops::neg_mean_prod>},
};

/// The sum of the regularisation terms; absent if there are none.
Value penalty(const Forward& forward) {
  Value sum;
  const auto add = [&](Value term) { sum = sum.present() ? ops::add(sum, term) : term; };
  for (std::size_t i = 0; i < forward.specs.size(); ++i) {
    const Value w = forward.parameters[i];
    const ParameterSpec& spec = forward.specs[i];
    if (spec.frozen) continue;
    if (spec.l1 != 0) add(ops::mul(ops::reduce_sum(ops::add(ops::relu(w), ops::relu(ops::neg(w)))), spec.l1));
    if (spec.l2 != 0) add(ops::mul(ops::reduce_sum(ops::mul(w, w)), spec.l2));
  }
  return sum;
}

[[noreturn]] void fail(const LossDefinition& loss, const std::string& reason) {
  throw Error(fmt::format("{}loss {}: {}", loss.where.empty() ? "" : loss.where + ": ", name_of(loss.loss), reason));
}

/// Labels (batch, 1), as from sequences of length 1, become (batch).
Value without_rows(Value labels, const Shape& output) {
  return output.rank() == 2 && labels.shape() == Shape{output[0], 1} ? ops::reshape(labels, {output[0]}) : labels;
}

/// Errors  the output is that of a final softmax or sigmoid, but the loss expects scores or log-probabilities.
void check_final_activation(const Forward& forward, const LossDefinition& loss) {
  const Targets targets = rule_of(loss.loss).targets;
  const Activation applied = targets == Targets::binary ? Activation::sigmoid : Activation::softmax;
  if (targets == Targets::values || forward.final_activation != applied) return;
  if (loss.from_logits) {
    fail(loss, fmt::format("from_logits: true expects scores, but the last layer ends with {}, which makes probabilities of them; remove "
                           "from_logits, or the {}",
                           name_of(applied), name_of(applied)));
  }
  if (loss.loss == Loss::nll) {
    fail(loss,
         "expects log-probabilities, but the last layer ends with softmax, which makes probabilities; end the model with log_softmax, "
         "or use the loss sparse_categorical_crossentropy");
  }
}

/// The options that only cross-entropies have.
void check_options(const LossDefinition& loss, const LossRule& rule, const Shape& output, bool features_last) {
  if (loss.label_smoothing != 0 && !rule.from_logits) fail(loss, "has no label_smoothing; the cross-entropies do");
  if (!(loss.label_smoothing >= 0 && loss.label_smoothing < 1)) {
    fail(loss, fmt::format("label_smoothing is {}, expected at least 0 and below 1", loss.label_smoothing));
  }
  if (loss.positive_weight != 1 && rule.targets != Targets::binary) fail(loss, "has no positive_weight; binary_crossentropy does");
  if (!(loss.positive_weight > 0)) fail(loss, fmt::format("positive_weight is {}, expected a number above 0", loss.positive_weight));
  if (loss.class_weights.empty()) return;
  if (!rule.class_weights) fail(loss, "has no class_weights; the categorical cross-entropies do");
  const std::size_t axis = features_last || rule.targets == Targets::one_hot ? output.rank() - 1 : 1;
  const std::int64_t classes = output.rank() < 2 ? 0 : output[axis];
  const auto given = static_cast<std::int64_t>(loss.class_weights.size());
  if (given != classes)
    fail(loss, fmt::format("expected {} class_weights, one for each class of the output {}, got {}", classes, output.str(), given));
  for (const double weight : loss.class_weights) {
    if (!(weight >= 0)) fail(loss, fmt::format("class_weights: expected numbers of at least 0, got {}", weight));
  }
}

ObjectiveInputs make_inputs(const Forward& forward, Value y, const LossDefinition& loss) {
  const LossRule& rule = rule_of(loss.loss);
  const Value output = forward.output;
  check_options(loss, rule, output.shape(), forward.features_last);
  ObjectiveInputs in{forward, loss, y, y, {}, {}, {}};
  const bool names_classes = rule.targets == Targets::labels || rule.targets == Targets::one_hot;
  // Losses with the option from_logits expect probabilities without it; nll takes the output as it is.
  const bool needs_softmax = names_classes && rule.from_logits;
  if (rule.targets == Targets::labels) {
    if (y.dtype() != DType::i64 && y.dtype() != DType::i32) {
      fail(loss, fmt::format("expected labels of i64 or i32, got {} {}{}", name_of(y.dtype()), y.shape().str(),
                             y.shape() == output.shape() ? "; categorical_crossentropy takes one value per class" : ""));
    }
    in.y = y = without_rows(y, output.shape());
    if (output.shape().rank() < 2 || y.shape().rank() + 1 != output.shape().rank()) {
      const bool too_many = output.shape().rank() > y.shape().rank() + 1;
      fail(loss, fmt::format("expected scores (batch, classes) and labels (batch), got {} and {}{}", output.shape().str(), y.shape().str(),
                             too_many ? "; for one label per sample, put a flatten layer before the first dense layer" : ""));
    }
  } else {
    if (!(y.shape() == output.shape())) {
      const bool labels = (y.dtype() == DType::i64 || y.dtype() == DType::i32) && y.shape().rank() + 1 == output.shape().rank();
      fail(loss, fmt::format("expected targets of the shape of the output, {}, got {}{}", output.shape().str(), y.shape().str(),
                             labels ? "; data: {targets: one_hot} makes them of class labels" : ""));
    }
    if (y.dtype() != output.dtype()) in.target = ops::cast(y, output.dtype());
  }
  check_final_activation(forward, loss);
  if (needs_softmax && !loss.from_logits && forward.final_activation != Activation::softmax) {
    fail(loss, "the last layer is not a softmax; add one, or set from_logits: true if the output is scores");
  }
  in.scores = loss.from_logits || (names_classes && !needs_softmax) ? output : forward.logits;
  if (rule.targets == Targets::labels && forward.features_last && output.shape().rank() > 2) {
    // Each step is a sample of its own: here classes are the last axis, elsewhere the second.
    const Shape scores = output.shape(), steps(scores.dims().first(scores.rank() - 1));
    if (!(y.shape() == steps)) {
      fail(loss,
           fmt::format("expected scores (batch, ..., classes) and labels (batch, ...), got {} and {}", scores.str(), y.shape().str()));
    }
    in.scores = ops::reshape(in.scores, {steps.count(), scores[scores.rank() - 1]});
    in.y = y = ops::reshape(y, {steps.count()});
  }
  if (rule.ignore_index && loss.ignore_index) {
    Graph& graph = y.graph();
    const Value ignored = y.dtype() == DType::i64 ? graph.constant(Tensor::scalar<std::int64_t>(*loss.ignore_index))
                                                  : graph.constant(Tensor::scalar(static_cast<std::int32_t>(*loss.ignore_index)));
    in.valid = ops::add(ops::neg(ops::cast(ops::equal(y, ignored), output.dtype())), 1.0);
    in.weight = ops::reduce_sum(in.valid);
  }
  return in;
}

}  // namespace

std::span<const LossRule> loss_rules() {
  return rules;
}
const LossRule& rule_of(Loss loss) {
  for (const LossRule& rule : rules) {
    if (rule.loss == loss) return rule;
  }
  throw Error("a loss without a row in train/losses.cpp");
}

Objective build_objective(const Forward& forward, Value y, const LossDefinition& loss, const std::vector<MetricDefinition>& metrics) {
  const LossRule& rule = rule_of(loss.loss);
  const ObjectiveInputs in = make_inputs(forward, y, loss);
  Objective objective;
  objective.weight = in.weight;
  const Value data_loss = rule.build(in);
  const Value added = penalty(forward);
  objective.loss = added.present() ? ops::add(data_loss, added) : data_loss;
  for (const MetricDefinition& metric : metrics) {
    const MetricRule& of = rule_of(metric.metric);
    if (!of.suits(rule)) {
      throw Error(fmt::format("metric {}: cannot be used with the loss {}{}", of.name, rule.name,
                              metric.metric == Metric::accuracy && rule.targets == Targets::values
                                  ? ", whose targets are values; use categorical_accuracy or binary_accuracy"
                                  : ""));
    }
    objective.metrics.emplace_back(metric.name(), of.build(in, metric, data_loss));
  }
  return objective;
}

Value build_probabilities(const Forward& forward, const LossDefinition& loss) {
  const LossRule& rule = rule_of(loss.loss);
  const Value output = forward.output;
  const auto rank = static_cast<std::int64_t>(output.shape().rank());
  if (rule.targets == Targets::values) return output;
  if (rule.targets == Targets::binary) return loss.from_logits ? ops::sigmoid(output) : output;
  const std::int64_t classes = forward.features_last || rule.targets == Targets::one_hot || rank < 2 ? rank - 1 : 1;
  const Value probabilities = loss.from_logits ? ops::softmax(output, classes) : rule.from_logits ? output : ops::exp(output);
  if (classes == rank - 1) return probabilities;
  std::vector<std::int64_t> order{0};
  for (std::int64_t axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.push_back(1);
  return ops::transpose(probabilities, order);
}

std::pair<Value, Value> build_classes(const Forward& forward, Value y, const LossDefinition& loss) {
  const Shape& shape = forward.output.shape();
  if (shape.rank() != 2 || shape[1] < 2) {
    throw Error(fmt::format("confusion matrix: expected an output (batch, classes) of at least two classes, got {}", shape.str()));
  }
  const LossRule& rule = rule_of(loss.loss);
  Value labels = rule.targets == Targets::labels ? without_rows(y, shape) : y;
  if (rule.targets != Targets::labels) {
    if (!(y.shape() == shape))
      throw Error(fmt::format("confusion matrix: expected targets of the shape of the output, {}, got {}", shape.str(), y.shape().str()));
    labels = ops::arg_max(y, 1);
  } else if (y.dtype() != DType::i64) {
    labels = ops::cast(labels, DType::i64);
  }
  return {labels, ops::arg_max(loss.from_logits ? forward.output : forward.logits, 1)};
}

}  // namespace tenon::train

namespace tenon {

const char* name_of(Loss loss) {
  return train::rule_of(loss).name;
}

}  // namespace tenon
