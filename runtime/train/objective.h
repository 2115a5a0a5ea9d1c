// train/objective.h - losses and metrics: one table each. A new one is an enumerator in tenon/definition.h and a row here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/definition.h>
#include <tenon/functions.h>

#include "train/builder.h"

namespace tenon::train {

/// What a loss compares the output with.
enum class Targets {
  labels,   ///< the number of the class: (batch)
  one_hot,  ///< one value per class: (batch, classes)
  binary,   ///< 0 or 1, of the output's shape
  values,   ///< numbers, of the output's shape
};

/// What losses and metrics are made from.
struct ObjectiveInputs {
  const Forward& forward;
  const LossDefinition& loss;
  Value y;       ///< as given
  Value target;  ///< y in the output's dtype; of labels, y itself
  Value scores;  ///< the output before a final softmax: the same order, exact
  Value weight;  ///< how many labels count, where some are ignored; else absent
  Value valid;   ///< beside weight: 1 where a label counts, 0 where not
};

struct LossRule {
  Loss loss;
  const char* name;
  const char* synonym;  ///< a second word for it; may be null
  Targets targets;
  bool from_logits;   ///< may be told that the output is scores
  bool ignore_index;  ///< may be told of a label that counts for nothing
  /// The mean over what counts.
  Value (*build)(const ObjectiveInputs& inputs);
};
std::span<const LossRule> loss_rules();
const LossRule& rule_of(Loss loss);

struct MetricRule {
  Metric metric;
  const char* name;
  const char* synonym;
  bool (*suits)(const LossRule& loss);
  /// The mean over what counts; `data_loss` is the loss without what regularisation adds.
  Value (*build)(const ObjectiveInputs& inputs, const MetricDefinition& definition, Value data_loss);
  double (*finish)(double mean);  ///< from the mean over batches to what is shown; null: the mean itself
};
std::span<const MetricRule> metric_rules();
const MetricRule& rule_of(Metric metric);

/// Loss and metrics of a batch.
struct Objective {
  Value loss;
  std::vector<std::pair<std::string, Value>> metrics;  ///< means over the batch, before `finish`
  Value weight;                                        ///< how much the batch weighs among others; absent: its number of samples
};
/// Errors  targets that do not fit the output, a metric that does not suit the loss.
Objective build_objective(const Forward& forward, Value y, const LossDefinition& loss, const std::vector<MetricDefinition>& metrics);

/// Class numbers (batch) from scores and from targets, for the confusion matrix. Errors  targets that name no classes.
std::pair<Value, Value> build_classes(const Forward& forward, Value y, const LossDefinition& loss);

}  // namespace tenon::train
