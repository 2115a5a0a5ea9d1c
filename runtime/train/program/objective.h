// SPDX-License-Identifier: Apache-2.0
// train/program/objective.h - losses and metrics, one table each. A new one needs an enumerator in tenon/definition.h and a row in the
// table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/data.h>
#include <tenon/definition.h>
#include <tenon/functions.h>

#include "train/program/builder.h"

namespace tenon::train {

/// The kind of targets of a loss.
enum class Targets {
  labels,     ///< class indices: (batch)
  one_hot,    ///< one value per class: (batch, classes)
  binary,     ///< 0 or 1, of the output's shape
  values,     ///< any numbers, of the output's shape
  sequences,  ///< rows of class indices: (batch, n)
  any,        ///< what a custom loss expects
};

/// Inputs of losses and metrics.
struct ObjectiveInputs {
  const ForwardOutput& forward;
  const LossDefinition& loss;
  Value y;         ///< as given; labels of several positions per sample as one row
  Value target;    ///< y in the output's dtype; integers of labels, sequences and custom losses as they are
  Value scores;    ///< the input of a final softmax or sigmoid: the same order without rounding
  Value weights;   ///< of each label, else of each sample: its sample weight, 0 if it is ignored; absent: 1 each
  Value divisors;  ///< the same times the class weights of labels: their sum divides the loss; absent: 1 each
  Targets kind;    ///< that of the loss; for a custom loss, of the targets it got
};

struct LossRule {
  Loss loss;
  const char* name;
  const char* synonym;  ///< a second name; may be null
  Targets targets;
  bool from_logits;  ///< has the option from_logits, as the following
  bool label_smoothing;
  bool ignore_index;
  bool class_weights;
  /// none: the losses of the labels or samples, (batch, ...), those of ignored labels 0 or anything finite. mean: their mean without
  /// `weights`, divided by the sum of `divisors`.
  Value (*build)(const ObjectiveInputs& inputs, ops::Reduction reduction);
};
std::span<const LossRule> loss_rules();
const LossRule& rule_of(Loss loss);

/// Errors  a custom loss without function or name, another loss with them, a blank without ctc.
void check_kind(const LossDefinition& loss);

/// The class weights of the loss, to be multiplied with scores whose classes are `axis`.
Value class_weights(const LossDefinition& loss, Value scores, std::int64_t axis);
/// sum(weights * values) / sum(divisors), absent weights being 1 each, and absent divisors the weights. Values of more axes than these
/// count with their mean over the others.
Value weighted_mean(Value values, Value weights, Value divisors);
/// The kind of the targets y; those of a custom loss are told by dtype and shape.
Targets kind_of_targets(const LossDefinition& loss, Value y, const Shape& output);

struct MetricRule {
  Metric metric;
  const char* name;
  const char* synonym;
  bool (*suits)(Targets targets);
  /// The mean over labels or samples, weighted by `weights`; `data_loss` is the loss without regularisation.
  Value (*build)(const ObjectiveInputs& inputs, const MetricDefinition& definition, Value data_loss);
  double (*finish)(double mean);  ///< maps the mean over batches to the shown value; null: the mean itself
};
std::span<const MetricRule> metric_rules();
const MetricRule& rule_of(Metric metric);

/// Loss and metrics of a batch.
struct Objective {
  Value loss;
  std::vector<std::pair<std::string, Value>> metrics;  ///< means over the batch, before `finish`
  Value weight;                                        ///< weight of the batch in means over batches; absent: its number of samples
  Value divisor;  ///< what the loss is divided by, the weight of its gradients in sums over batches; absent: the number of samples
};
/// Of a model with one output. `sample_weights` may be absent.
/// Errors  targets that do not fit the output, sample weights that are not one number per sample, a metric that cannot be used with the
/// loss.
Objective build_objective(const Forward& forward, Value y, const LossDefinition& loss, const std::vector<MetricDefinition>& metrics,
                          Value sample_weights = {});
/// The weighted sum of the losses, each with its target; ModelSetup::losses. `metrics` begins with the losses of named outputs, each the
/// mean over its batch; the weight of a batch is its number of samples, or the sum of their weights. Errors  as above, of the output named.
Objective build_objective(const Forward& forward, std::span<const Value> targets, const std::vector<OutputLoss>& losses,
                          Value sample_weights = {});
/// The output of that name; the first one if it is empty.
const ForwardOutput& output_of(const Forward& forward, const std::string& name);

/// The output as probabilities, as Model::predict_probabilities describes it.
Value build_probabilities(const ForwardOutput& forward, const LossDefinition& loss);
/// True if the output scores classes: the loss says so, or its targets are one-hot.
inline bool scores_classes(const LossDefinition& loss, tenon::Targets targets) {
  const Targets kind = rule_of(loss.loss).targets;
  return kind == Targets::labels || kind == Targets::one_hot || targets != tenon::Targets::as_given;
}

/// True if build_probabilities gives probabilities, not values.
inline bool gives_probabilities(const LossDefinition& loss) {
  const Targets targets = rule_of(loss.loss).targets;
  return targets != Targets::values && targets != Targets::any;
}

/// The dtype and shape of targets for a batch of samples with outputs of this shape. Labels stand in place of the scores along the last
/// axis of the output.
std::pair<DType, Shape> target_type(const LossDefinition& loss, const Shape& output, std::int64_t batch);

/// For the confusion matrix: (expected, predicted) class indices (batch). Errors  targets that are not classes.
std::pair<Value, Value> build_classes(const ForwardOutput& forward, Value y, const LossDefinition& loss);

}  // namespace tenon::train
