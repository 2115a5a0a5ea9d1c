// SPDX-License-Identifier: Apache-2.0
// Builds loss and metrics behind a forward pass: checks targets, weights labels and samples.
#include "train/program/objective.h"

#include <fmt/core.h>

#include <algorithm>

#include <tenon/error.h>

namespace tenon::train {
namespace {

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
  throw Error(fmt::format("{}loss {}: {}", loss.where.empty() ? "" : loss.where + ": ", loss.str(), reason));
}

/// Labels (batch, 1), as from sequences of length 1, become (batch).
Value without_rows(Value labels, const Shape& output) {
  return output.rank() == 2 && labels.shape() == Shape{output[0], 1} ? ops::reshape(labels, {output[0]}) : labels;
}

/// Errors  the output is that of a final softmax or sigmoid, but the loss expects scores or log-probabilities.
void check_final_activation(const ForwardOutput& forward, const LossDefinition& loss) {
  const Targets targets = rule_of(loss.loss).targets;
  const Activation applied = targets == Targets::binary ? Activation::sigmoid : Activation::softmax;
  if (targets == Targets::values || targets == Targets::any || forward.final_activation != applied) return;
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
  if (loss.label_smoothing != 0 && !rule.label_smoothing) fail(loss, "has no label_smoothing; the cross-entropies do");
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

/// The targets as the loss reads them: sets y and target. Errors  their dtype or shape does not fit the output.
void set_targets(ObjectiveInputs& in, Targets kind) {
  const Shape output = in.forward.output.shape();
  const Value y = in.y;
  const bool integers = y.dtype() == DType::i64 || y.dtype() == DType::i32;
  const auto given = [&] { return fmt::format("{} {}", name_of(y.dtype()), y.shape().str()); };
  switch (kind) {
    case Targets::labels: {
      if (!integers) {
        fail(in.loss, fmt::format("expected labels of i64 or i32, got {}{}", given(),
                                  y.shape() == output ? "; categorical_crossentropy takes one value per class" : ""));
      }
      in.target = in.y = without_rows(y, output);
      const std::size_t rank = in.y.shape().rank();
      if (output.rank() < 2 || rank + 1 != output.rank()) {
        fail(in.loss,
             fmt::format("expected scores (batch, classes) and labels (batch), got {} and {}{}", output.str(), in.y.shape().str(),
                         output.rank() > rank + 1 ? "; for one label per sample, put a flatten layer before the first dense layer" : ""));
      }
      return;
    }
    case Targets::sequences:
      if (output.rank() != 3 || !in.forward.features_last || !integers || y.shape().rank() < 1 || y.shape().rank() > 2) {
        fail(in.loss, fmt::format("expected scores (batch, time, classes) and rows of labels (batch, n) of i64 or i32, got {} and {}{}",
                                  output.str(), given(),
                                  output.rank() == 3 && !in.forward.features_last ? "; a dense layer on a sequence makes scores" : ""));
      }
      if (y.shape().rank() == 1) in.y = ops::reshape(y, {y.shape()[0], 1});
      return;
    case Targets::any:
      if (y.shape().rank() < 1 || output.rank() < 1 || y.shape()[0] != output[0])
        fail(in.loss, fmt::format("expected as many targets as samples, got {} and {}", output.str(), given()));
      break;
    default:
      if (const std::int64_t n = output.rank() > 0 ? output[0] : 0; output == Shape{n} && y.shape() == Shape{n, 1}) {
        in.target = in.y = ops::reshape(y, output);
      } else if (!(y.shape() == output)) {
        fail(in.loss,
             fmt::format("expected targets of the shape of the output, {}, got {}{}", output.str(), y.shape().str(),
                         integers && y.shape().rank() + 1 == output.rank() ? "; data: {targets: one_hot} makes them of class labels" : ""));
      }
  }
  const DType dtype = in.forward.output.dtype();
  if (y.dtype() != dtype && !(kind == Targets::any && !is_floating(y.dtype()))) in.target = ops::cast(in.y, dtype);
}

/// Sets the weights of labels or samples. Errors  sample weights that are not one number per sample.
void set_weights(ObjectiveInputs& in, Value sample_weights, Targets kind, const Shape& labels) {
  const DType dtype = in.forward.output.dtype();
  Graph& graph = in.forward.output.graph();
  if (sample_weights.present()) {
    const std::int64_t batch = in.forward.output.shape()[0];
    if (sample_weights.shape() != Shape{batch} || !is_floating(sample_weights.dtype())) {
      throw Error(fmt::format("sample weights: expected f32 ({}), one for each sample, got {} {}", batch, name_of(sample_weights.dtype()),
                              sample_weights.shape().str()));
    }
    in.weights = sample_weights.dtype() == dtype ? sample_weights : ops::cast(sample_weights, dtype);
    if (kind == Targets::labels && labels.rank() > 1) {  // each label of a sample has its weight
      Shape column{batch};
      for (std::size_t i = 1; i < labels.rank(); ++i) column.push_back(1);
      in.weights = ops::reshape(ops::expand(ops::reshape(in.weights, column), labels), in.y.shape());
    }
  }
  if (in.loss.ignore_index && rule_of(in.loss.loss).ignore_index) {
    const std::int64_t label = *in.loss.ignore_index;
    const Value ignored =
        graph.constant(in.y.dtype() == DType::i64 ? Tensor::scalar(label) : Tensor::scalar(static_cast<std::int32_t>(label)));
    const Value valid = 1.0 - ops::cast(ops::equal(in.y, ignored), dtype);
    in.weights = in.weights.present() ? in.weights * valid : valid;
  }
  in.divisors = in.weights;
  if (kind == Targets::labels && !in.loss.class_weights.empty()) {
    const std::int64_t classes = in.scores.shape()[1];
    const Value of_label = ops::reduce_sum(ops::one_hot(in.y, classes, dtype, 0, 1, 1) * class_weights(in.loss, in.scores, 1), {1});
    in.divisors = in.weights.present() ? in.weights * of_label : of_label;
  }
}

/// Labels of several positions per sample, and scores with classes last, as samples of their own: elsewhere classes are the second axis.
void join_positions(ObjectiveInputs& in) {
  const Shape scores = in.forward.output.shape();
  if (!in.forward.features_last || scores.rank() <= 2) return;
  const Shape positions(scores.dims().first(scores.rank() - 1));
  if (!(in.y.shape() == positions)) {
    fail(in.loss,
         fmt::format("expected scores (batch, ..., classes) and labels (batch, ...), got {} and {}", scores.str(), in.y.shape().str()));
  }
  in.scores = ops::reshape(in.scores, {positions.count(), scores[scores.rank() - 1]});
  in.y = ops::reshape(in.y, {positions.count()});
}

ObjectiveInputs make_inputs(const ForwardOutput& forward, Value y, const LossDefinition& loss, Value sample_weights) {
  const LossRule& rule = rule_of(loss.loss);
  const Value output = forward.output;
  if (!is_floating(output.dtype()))
    fail(loss, fmt::format("expected an output of floats, got {}{}", name_of(output.dtype()), output.shape().str()));
  check_options(loss, rule, output.shape(), forward.features_last);
  ObjectiveInputs in{forward, loss, y, y, {}, {}, {}, {}};
  const bool names_classes = rule.targets == Targets::labels || rule.targets == Targets::one_hot || rule.targets == Targets::sequences;
  // Losses with the option from_logits expect probabilities without it; nll takes the output as it is.
  const bool needs_softmax = names_classes && rule.from_logits;
  in.kind = kind_of_targets(loss, y, output.shape());
  set_targets(in, rule.targets == Targets::any ? Targets::any : in.kind);
  check_final_activation(forward, loss);
  if (needs_softmax && !loss.from_logits && forward.final_activation != Activation::softmax) {
    fail(loss, "the last layer is not a softmax; add one, or set from_logits: true if the output is scores");
  }
  in.scores = loss.from_logits || (names_classes && !needs_softmax) ? output : forward.logits;
  const Shape labels = in.y.shape();
  if (in.kind == Targets::labels) join_positions(in);
  set_weights(in, sample_weights, rule.targets, labels);
  return in;
}

}  // namespace

void check_kind(const LossDefinition& loss) {
  if (loss.loss != Loss::custom && (loss.function != nullptr || !loss.name.empty()))
    fail(loss, "has no function and no name; Loss::custom has");
  if (loss.loss == Loss::custom && (loss.function == nullptr || loss.name.empty()))
    fail(loss, "expected a function and a name: {.loss = Loss::custom, .function = ..., .name = \"...\"}");
  if (loss.loss != Loss::ctc && loss.blank != 0) fail(loss, "has no blank; ctc has");
}

Value class_weights(const LossDefinition& loss, Value scores, std::int64_t axis) {
  Shape shape;
  for (std::size_t i = 0; i < scores.shape().rank(); ++i) shape.push_back(1);
  shape.set(static_cast<std::size_t>(axis), static_cast<std::int64_t>(loss.class_weights.size()));
  Tensor values = Tensor::empty(DType::f64, shape);
  std::copy(loss.class_weights.begin(), loss.class_weights.end(), values.data<double>());
  return scores.graph().constant(values.to(scores.dtype()));
}

Value weighted_mean(Value values, Value weights, Value divisors) {
  if (!weights.present() && !divisors.present()) return ops::reduce_mean(values);
  const std::size_t rank = (weights.present() ? weights : divisors).shape().rank();
  std::vector<std::int64_t> rest;
  for (std::size_t i = rank; i < values.shape().rank(); ++i) rest.push_back(static_cast<std::int64_t>(i));
  if (!rest.empty()) values = ops::reduce_mean(values, rest);
  if (!divisors.present()) divisors = weights;
  return quotient(ops::reduce_sum(weights.present() ? ops::mul(values, weights) : values), ops::reduce_sum(divisors));
}

Targets kind_of_targets(const LossDefinition& loss, Value y, const Shape& output) {
  const Targets kind = rule_of(loss.loss).targets;
  if (kind != Targets::any) return kind;
  const bool integers = y.dtype() == DType::i64 || y.dtype() == DType::i32;
  if (integers && y.shape().rank() == 1 && output.rank() == 2) return Targets::labels;
  if (y.shape() == output) return output.rank() > 1 && output[output.rank() - 1] > 1 ? Targets::one_hot : Targets::binary;
  return Targets::any;
}

namespace {

/// Without regularisation.
Objective objective_of(const ForwardOutput& forward, Value y, const LossDefinition& loss, const std::vector<MetricDefinition>& metrics,
                       Value sample_weights) {
  const LossRule& rule = rule_of(loss.loss);
  const ObjectiveInputs in = make_inputs(forward, y, loss, sample_weights);
  Objective objective;
  if (in.weights.present()) objective.weight = ops::reduce_sum(in.weights);
  if (in.divisors.present()) objective.divisor = in.divisors.id() == in.weights.id() ? objective.weight : ops::reduce_sum(in.divisors);
  // Without weights the op of a loss divides, faster than the nodes of weighted_mean.
  objective.loss = in.weights.present() ? weighted_mean(rule.build(in, ops::Reduction::none), in.weights, in.divisors)
                                        : rule.build(in, ops::Reduction::mean);
  for (const MetricDefinition& metric : metrics) {
    const MetricRule& of = rule_of(metric.metric);
    if (!of.suits(in.kind)) {
      throw Error(fmt::format("metric {}: cannot be used with the loss {}{}", of.name, loss.str(),
                              metric.metric == Metric::accuracy && in.kind == Targets::values
                                  ? ", whose targets are values; use categorical_accuracy or binary_accuracy"
                                  : ""));
    }
    objective.metrics.emplace_back(metric.name(), of.build(in, metric, objective.loss));
  }
  return objective;
}

void add_penalty(Objective& objective, const Forward& forward) {
  if (const Value added = penalty(forward); added.present()) objective.loss = ops::add(objective.loss, added);
}

}  // namespace

const ForwardOutput& output_of(const Forward& forward, const std::string& name) {
  const auto found = std::ranges::find(forward.outputs, name, &ForwardOutput::name);
  return name.empty() ? forward.outputs.at(0) : *found;
}

Objective build_objective(const Forward& forward, Value y, const LossDefinition& loss, const std::vector<MetricDefinition>& metrics,
                          Value sample_weights) {
  Objective objective = objective_of(forward.outputs.at(0), y, loss, metrics, sample_weights);
  add_penalty(objective, forward);
  return objective;
}

Objective build_objective(const Forward& forward, std::span<const Value> targets, const std::vector<OutputLoss>& losses,
                          Value sample_weights) {
  if (losses.size() == 1 && losses[0].output.empty())
    return build_objective(forward, targets[0], losses[0].loss, losses[0].metrics, sample_weights);
  Objective all;
  std::vector<std::pair<std::string, Value>> metrics;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const OutputLoss& of = losses[i];
    Objective own;
    try {
      own = objective_of(output_of(forward, of.output), targets[i], of.loss, of.metrics, sample_weights);
    } catch (const Error& problem) {
      throw Error(problem.status(), fmt::format("output '{}': {}", of.output, problem.what()));
    }
    const Value term = of.weight == 1 ? own.loss : ops::mul(own.loss, of.weight);
    all.loss = all.loss.present() ? ops::add(all.loss, term) : term;
    all.metrics.emplace_back(of.output + "_loss", own.loss);
    for (const auto& [name, value] : own.metrics) metrics.emplace_back(of.output + "_" + name, value);
  }
  all.metrics.insert(all.metrics.end(), metrics.begin(), metrics.end());
  if (sample_weights.present()) {
    const Value sum = ops::reduce_sum(sample_weights);
    all.weight = all.divisor = sum.dtype() == all.loss.dtype() ? sum : ops::cast(sum, all.loss.dtype());
  }
  add_penalty(all, forward);
  return all;
}

Value build_probabilities(const ForwardOutput& forward, const LossDefinition& loss) {
  const LossRule& rule = rule_of(loss.loss);
  const Value output = forward.output;
  const auto rank = static_cast<std::int64_t>(output.shape().rank());
  if (!gives_probabilities(loss)) return output;
  if (rule.targets == Targets::binary) return loss.from_logits ? ops::sigmoid(output) : output;
  const std::int64_t classes = forward.features_last || rule.targets == Targets::one_hot || rank < 2 ? rank - 1 : 1;
  const Value probabilities = loss.from_logits ? ops::softmax(output, classes) : rule.from_logits ? output : ops::exp(output);
  if (classes == rank - 1) return probabilities;
  std::vector<std::int64_t> order{0};
  for (std::int64_t axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.push_back(1);
  return ops::transpose(probabilities, order);
}

std::pair<DType, Shape> target_type(const LossDefinition& loss, const Shape& output, std::int64_t batch) {
  const Targets kind = rule_of(loss.loss).targets;
  if (kind == Targets::labels) {  // in place of the scores along the last axis
    const auto axes = output.dims();
    return {DType::i64, Shape(axes.first(axes.empty() ? 0 : axes.size() - 1)).with_batch(batch)};
  }
  if (kind == Targets::sequences) return {DType::i64, {batch, 1}};
  return {DType::f32, output.with_batch(batch)};
}

std::pair<Value, Value> build_classes(const ForwardOutput& forward, Value y, const LossDefinition& loss) {
  const Shape& shape = forward.output.shape();
  if (shape.rank() != 2 || shape[1] < 2) {
    throw Error(fmt::format("confusion matrix: expected an output (batch, classes) of at least two classes, got {}", shape.str()));
  }
  const bool has_labels = kind_of_targets(loss, y, shape) == Targets::labels;
  Value labels = has_labels ? without_rows(y, shape) : y;
  if (!has_labels) {
    if (!(y.shape() == shape))
      throw Error(fmt::format("confusion matrix: expected targets of the shape of the output, {}, got {}", shape.str(), y.shape().str()));
    labels = ops::arg_max(y, 1);
  } else if (y.dtype() != DType::i64) {
    labels = ops::cast(labels, DType::i64);
  }
  return {labels, ops::arg_max(loss.from_logits ? forward.output : forward.logits, 1)};
}

}  // namespace tenon::train
