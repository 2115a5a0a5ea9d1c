// SPDX-License-Identifier: Apache-2.0
// train/objective.h - losses and metrics, one table each. A new one needs an enumerator in tenon/definition.h and a row in the table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/data.h>
#include <tenon/definition.h>
#include <tenon/functions.h>

#include "train/builder.h"

namespace tenon::train {

/// The kind of targets of a loss.
enum class Targets {
  labels,   ///< class indices: (batch)
  one_hot,  ///< one value per class: (batch, classes)
  binary,   ///< 0 or 1, of the output's shape
  values,   ///< any numbers, of the output's shape
};

/// Inputs of losses and metrics.
struct ObjectiveInputs {
  const Forward& forward;
  const LossDefinition& loss;
  Value y;       ///< as given
  Value target;  ///< y in the output's dtype; for labels, y itself
  Value scores;  ///< the input of a final softmax or sigmoid: the same order without rounding
  Value weight;  ///< number of labels that are not ignored; absent without ignore_index
  Value valid;   ///< with weight: 0 for ignored labels, else 1
};

struct LossRule {
  Loss loss;
  const char* name;
  const char* synonym;  ///< a second name; may be null
  Targets targets;
  bool from_logits;    ///< a cross-entropy or kl_divergence: has the options from_logits and label_smoothing
  bool ignore_index;   ///< has the option ignore_index
  bool class_weights;  ///< has the option class_weights
  /// The mean over the labels that are not ignored.
  Value (*build)(const ObjectiveInputs& inputs);
};
std::span<const LossRule> loss_rules();
const LossRule& rule_of(Loss loss);

struct MetricRule {
  Metric metric;
  const char* name;
  const char* synonym;
  bool (*suits)(const LossRule& loss);
  /// The mean over the labels that are not ignored; `data_loss` is the loss without regularisation.
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
};
/// Errors  targets that do not fit the output, a metric that cannot be used with the loss.
Objective build_objective(const Forward& forward, Value y, const LossDefinition& loss, const std::vector<MetricDefinition>& metrics);

/// The output as probabilities, as Model::predict_probabilities describes it.
Value build_probabilities(const Forward& forward, const LossDefinition& loss);
/// True if the output scores classes: the loss says so, or its targets are one-hot.
inline bool scores_classes(const LossDefinition& loss, tenon::Targets targets) {
  const Targets kind = rule_of(loss.loss).targets;
  return kind == Targets::labels || kind == Targets::one_hot || targets != tenon::Targets::as_given;
}

/// True if build_probabilities gives probabilities, not values.
inline bool gives_probabilities(const LossDefinition& loss) {
  return rule_of(loss.loss).targets != Targets::values;
}

/// For the confusion matrix: (expected, predicted) class indices (batch). Errors  targets that are not classes.
std::pair<Value, Value> build_classes(const Forward& forward, Value y, const LossDefinition& loss);

}  // namespace tenon::train
