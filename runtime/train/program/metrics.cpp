// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cmath>

#include "train/program/objective.h"

namespace tenon::train {
namespace {

/// The weighted mean of values of labels or samples.
Value mean(Value values, const ObjectiveInputs& in) {
  return weighted_mean(values, in.weights, in.weights);
}

/// 1 where x > 0 or NaN, else 0: a NaN score must not count as a good one.
Value is_positive(Value x) {
  return ops::cast(ops::cast(ops::relu(x), DType::boolean), x.dtype());
}

Value sparse_categorical_accuracy(const ObjectiveInputs& in, const MetricDefinition&, Value) {
  Value best = ops::arg_max(in.scores, 1);
  if (in.y.dtype() != DType::i64) best = ops::cast(best, in.y.dtype());
  return mean(ops::cast(ops::equal(best, in.y), in.scores.dtype()), in);
}

Value categorical_accuracy(const ObjectiveInputs& in, const MetricDefinition&, Value) {
  const Shape shape = in.scores.shape();
  if (shape.rank() < 2) throw Error(fmt::format("metric categorical_accuracy: expected an output (batch, classes), got {}", shape.str()));
  return mean(ops::cast(ops::equal(ops::arg_max(in.scores, 1), ops::arg_max(in.target, 1)), in.scores.dtype()), in);
}

Value binary_accuracy(const ObjectiveInputs& in, const MetricDefinition&, Value) {
  const DType dtype = in.target.dtype();
  const Value predicted = is_positive(ops::add(in.forward.output, in.loss.from_logits ? 0.0 : -0.5));
  const Value expected = is_positive(ops::add(in.target, -0.5));
  return mean(ops::cast(ops::equal(predicted, expected), dtype), in);
}

Value accuracy(const ObjectiveInputs& in, const MetricDefinition& definition, Value data_loss) {
  switch (in.kind) {
    case Targets::labels:
      return sparse_categorical_accuracy(in, definition, data_loss);
    case Targets::one_hot:
      return categorical_accuracy(in, definition, data_loss);
    default:
      return binary_accuracy(in, definition, data_loss);
  }
}

/// Compares the number of scores above that of the right class with k. A mask over the class indices selects the score of the right class.
Value top_k(const ObjectiveInputs& in, const MetricDefinition& definition, Value) {
  const Shape shape = in.scores.shape();
  if (shape.rank() < 2) throw Error(fmt::format("metric top_k: expected an output (batch, classes), got {}", shape.str()));
  const std::int64_t classes = shape[1];
  if (definition.k < 1 || definition.k > classes) {
    throw Error(fmt::format("metric top_k: k is {}, expected 1 to {}, the number of classes", definition.k, classes));
  }
  Graph& graph = in.scores.graph();
  Value label = in.kind == Targets::labels ? in.y : ops::arg_max(in.target, 1);
  if (label.dtype() != DType::i64) label = ops::cast(label, DType::i64);
  Shape column = shape, row;
  column.set(1, 1);
  for (std::size_t i = 0; i < shape.rank(); ++i) row.push_back(i == 1 ? classes : 1);
  Tensor indices = Tensor::empty(DType::i64, row);
  for (std::int64_t c = 0; c < classes; ++c) indices.data<std::int64_t>()[c] = c;
  const DType dtype = in.scores.dtype();
  const Value mask = ops::cast(ops::equal(ops::reshape(label, column), graph.constant(indices)), dtype);
  const Value own = ops::reduce_sum(ops::mul(mask, in.scores), {1}, true);
  const Value above = ops::reduce_sum(is_positive(ops::sub(in.scores, own)), {1});
  return mean(ops::add(ops::neg(is_positive(ops::add(above, 1.0 - static_cast<double>(definition.k)))), 1.0), in);
}

Value data_loss_itself(const ObjectiveInputs&, const MetricDefinition&, Value data_loss) {
  return data_loss;
}

Value mse(const ObjectiveInputs& in, const MetricDefinition&, Value) {
  return mean(ops::mse(in.forward.output, in.target, ops::Reduction::none), in);
}

Value mae(const ObjectiveInputs& in, const MetricDefinition&, Value) {
  return mean(ops::mae(in.forward.output, in.target, ops::Reduction::none), in);
}

bool labels(Targets targets) {
  return targets == Targets::labels;
}
bool classes(Targets targets) {
  return targets == Targets::labels || targets == Targets::one_hot;
}
bool classes_or_binary(Targets targets) {
  return classes(targets) || targets == Targets::binary;
}
bool elementwise(Targets targets) {
  return targets == Targets::one_hot || targets == Targets::binary || targets == Targets::values;
}

const MetricRule rules[] = {
    {Metric::accuracy, "accuracy", "acc", classes_or_binary, accuracy, nullptr},
    {Metric::sparse_categorical_accuracy, "sparse_categorical_accuracy", nullptr, labels, sparse_categorical_accuracy, nullptr},
    {Metric::categorical_accuracy, "categorical_accuracy", nullptr, elementwise, categorical_accuracy, nullptr},
    {Metric::binary_accuracy, "binary_accuracy", nullptr, elementwise, binary_accuracy, nullptr},
    {Metric::top_k, "top_k", "top_k_categorical_accuracy", classes, top_k, nullptr},
    {Metric::perplexity, "perplexity", nullptr, classes, data_loss_itself, [](double mean) { return std::exp(mean); }},
    {Metric::mse, "mse", "mean_squared_error", elementwise, mse, nullptr},
    {Metric::mae, "mae", "mean_absolute_error", elementwise, mae, nullptr},
};

}  // namespace

std::span<const MetricRule> metric_rules() {
  return rules;
}
const MetricRule& rule_of(Metric metric) {
  for (const MetricRule& rule : rules) {
    if (rule.metric == metric) return rule;
  }
  throw Error("a metric without a row in train/program/metrics.cpp");
}

}  // namespace tenon::train

namespace tenon {

const char* name_of(Metric metric) {
  return train::rule_of(metric).name;
}
std::string MetricDefinition::name() const {
  return metric == Metric::top_k ? fmt::format("top_{}_accuracy", k) : name_of(metric);
}

}  // namespace tenon
