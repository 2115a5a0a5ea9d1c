// SPDX-License-Identifier: Apache-2.0
#include "train/objective.h"

#include <fmt/core.h>

namespace tenon::train {
namespace {

/// Softmax and cross-entropy are one op: a separate softmax could round a probability to 0.
Value sparse_categorical_crossentropy(const ObjectiveInputs& in) {
  ops::CrossEntropyOptions options;
  options.ignore_index = in.loss.ignore_index;
  return ops::softmax_cross_entropy(in.scores, in.y, options);
}

Value categorical_crossentropy(const ObjectiveInputs& in) {
  return ops::categorical_cross_entropy(in.scores, in.target, true);
}

/// Sigmoid and cross-entropy are one function: a separate sigmoid rounds to 0 or 1, beyond which its gradient is 0.
Value binary_crossentropy(const ObjectiveInputs& in) {
  const bool sigmoid = in.forward.final_activation == Activation::sigmoid && !in.loss.from_logits;
  return ops::binary_cross_entropy(sigmoid ? in.forward.logits : in.forward.output, in.target, sigmoid || in.loss.from_logits);
}

Value kl_divergence(const ObjectiveInputs& in) {
  return ops::kl_divergence(ops::log_softmax(in.scores), in.target, true);
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
    {Loss::sparse_categorical_crossentropy, "sparse_categorical_crossentropy", nullptr, Targets::labels, true, true,
     sparse_categorical_crossentropy},
    {Loss::categorical_crossentropy, "categorical_crossentropy", nullptr, Targets::one_hot, true, false, categorical_crossentropy},
    {Loss::binary_crossentropy, "binary_crossentropy", "bce", Targets::binary, true, false, binary_crossentropy},
    {Loss::kl_divergence, "kl_divergence", "kld", Targets::one_hot, true, false, kl_divergence},
    {Loss::nll, "nll", "negative_log_likelihood", Targets::labels, false, true, nll},
    {Loss::mse, "mse", "mean_squared_error", Targets::values, false, false, of_values<ops::mse>},
    {Loss::half_mse, "half_mse", "euclidean", Targets::values, false, false, of_values<ops::half_mse>},
    {Loss::mae, "mae", "mean_absolute_error", Targets::values, false, false, of_values<ops::mae>},
    {Loss::huber, "huber", nullptr, Targets::values, false, false, huber},
    {Loss::neg_mean_prod, "neg_mean_prod", nullptr, Targets::values, false, false, of_values<ops::neg_mean_prod>},
};

/// The sum of the regularisation terms; absent if there are none.
Value penalty(const Forward& forward) {
  Value sum;
  const auto add = [&](Value term) { sum = sum.present() ? ops::add(sum, term) : term; };
  for (std::size_t i = 0; i < forward.specs.size(); ++i) {
    const Value w = forward.parameters[i];
    const ParameterSpec& spec = forward.specs[i];
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

ObjectiveInputs make_inputs(const Forward& forward, Value y, const LossDefinition& loss) {
  const LossRule& rule = rule_of(loss.loss);
  const Value output = forward.output;
  ObjectiveInputs in{forward, loss, y, y, {}, {}, {}};
  const bool names_classes = rule.targets == Targets::labels || rule.targets == Targets::one_hot;
  // Losses with the option from_logits expect probabilities without it; nll takes the output as it is.
  const bool needs_softmax = names_classes && rule.from_logits;
  if (rule.targets == Targets::labels) {
    if (y.dtype() != DType::i64 && y.dtype() != DType::i32) {
      fail(loss, fmt::format("expected labels of i64 or i32, got {}", name_of(y.dtype())));
    }
    in.y = y = without_rows(y, output.shape());
    if (output.shape().rank() < 2 || y.shape().rank() + 1 != output.shape().rank()) {
      const bool too_many = output.shape().rank() > y.shape().rank() + 1;
      fail(loss, fmt::format("expected scores (batch, classes) and labels (batch), got {} and {}{}", output.shape().str(), y.shape().str(),
                             too_many ? "; for one label per sample, put a flatten layer before the first dense layer" : ""));
    }
  } else {
    if (!(y.shape() == output.shape())) {
      fail(loss, fmt::format("expected targets of the shape of the output, {}, got {}", output.shape().str(), y.shape().str()));
    }
    if (y.dtype() != output.dtype()) in.target = ops::cast(y, output.dtype());
  }
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
