// SPDX-License-Identifier: Apache-2.0
// config/train_blocks.h - readers of the blocks of train.yaml: data, loss, metrics, optimizer, callbacks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tenon/callbacks.h>
#include <tenon/definition.h>
#include <tenon/definition_text.h>
#include <tenon/train_definition.h>

#include "config/yaml_names.h"

namespace tenon::config {

inline constexpr std::int64_t max_count = std::int64_t{1} << 40;  ///< far beyond any use, far below overflow
inline constexpr Range<double> from_zero{.lowest = 0};
inline constexpr Range<double> above_zero{.lowest = 0, .above_lowest = true};
inline constexpr Range<double> below_one{.lowest = 0, .highest = 1, .below_highest = true};

/// Reads `weights:`, a path, or {file: ..., map: ..., transpose: ..., strict: ...}; nothing if it is absent or null.
std::optional<WeightsFile> read_weights(Section& top);
/// Reads `data:`, including the keys that say how batches are loaded.
/// Errors  the block is missing or not a map. Keys that the source does not use are reported by the section.
DataDefinition read_data(Section& top, FitOptions& out_fit);
/// Reads a name, or {name: ..., from_logits: ..., label_smoothing: ..., ...}.
LossDefinition read_loss(const Value& value);
/// Reads {OUTPUT: a loss, with the keys target, weight and metrics, too}.
std::vector<OutputLoss> read_losses(const Value& value);
/// Reads a name, {name: top_k, k: 3}, or a list of them. Errors also: a metric that cannot be used with the loss.
std::vector<MetricDefinition> read_metrics(const Value& value, const LossDefinition& loss);
/// Reads a name, or {name: ..., learning_rate: ..., ...}. A schedule that monitors epochs is a callback and is appended to `out_callbacks`.
OptimizerDefinition read_optimizer(const Value& value, std::vector<CallbackDefinition>& out_callbacks);
/// Reads a list of names and of maps of one key, as in `early_stopping: {patience: 3}`.
std::vector<CallbackDefinition> read_callbacks(const Value& value);

/// The keys at the top that are arguments of Model::compile.
void read_compile_keys(Section& top, CompileDefinition& out_definition);
/// The keys at the top that are arguments of Model::fit, without `callbacks`.
void read_fit_keys(Section& top, FitOptions& out_fit);
/// How batches are read: workers, prefetch, pinned, shuffle_buffer.
void read_batch_keys(Section& section, FitOptions& out_fit);
/// Errors  a shuffle buffer, which messages call `key`, without shuffling.
void check_shuffle_buffer(Section& top, const FitOptions& fit, const std::string& key = "shuffle_buffer");

/// Shared by optimizer and callbacks: the keys of {schedule: cosine, per: epoch, ...} except `schedule` and `initial`.
Schedule read_schedule_keys(Section& section, Schedule::Kind kind);
ReduceOnPlateau::Options read_plateau_keys(Section& section);

}  // namespace tenon::config
