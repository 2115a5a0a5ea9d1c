// config/train_blocks.h - the blocks of train.yaml that say how to train: loss, metrics, optimizer, callbacks.
#pragma once

#include <vector>

#include <tenon/callbacks.h>
#include <tenon/definition.h>

#include "config/yaml_reader.h"

namespace tenon::config {

inline constexpr std::int64_t most = std::int64_t{1} << 40;  ///< of counts: far beyond any use, far below overflow
inline constexpr Range<double> from_zero{.lowest = 0};
inline constexpr Range<double> above_zero{.lowest = 0, .above_lowest = true};
inline constexpr Range<double> below_one{.lowest = 0, .highest = 1, .below_highest = true};

/// A name, or {name: ..., from_logits: ..., ignore_index: ..., delta: ...}.
LossDefinition read_loss(const Value& value);
/// A name, {name: top_k, k: 3}, or a list of them. Errors also: one that does not go with the loss.
std::vector<MetricDefinition> read_metrics(const Value& value, const LossDefinition& loss);
/// A name, or {name: ..., learning_rate: ..., ...}. A schedule that watches the epochs is a callback, and goes to the end of
/// `out_callbacks`.
OptimizerDefinition read_optimizer(const Value& value, std::vector<CallbackDefinition>& out_callbacks);
/// A list of names and of maps of one key, as in `early_stopping: {patience: 3}`.
std::vector<CallbackDefinition> read_callbacks(const Value& value);

/// What both blocks share: {schedule: cosine, per: epoch, ...} without `schedule` itself and `initial`.
Schedule read_schedule_keys(Section& section, Schedule::Kind kind);
const std::vector<Choice<Schedule::Kind>>& schedule_kinds();
ReduceOnPlateau::Options read_plateau_keys(Section& section);

}  // namespace tenon::config
