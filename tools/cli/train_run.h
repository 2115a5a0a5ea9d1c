// SPDX-License-Identifier: Apache-2.0
// cli/train_run.h - the training run of a YAML file and the command line.
#pragma once

#include <string>
#include <vector>

#include <tenon/predictor.h>
#include <tenon/training_run.h>

#include "cli/common.h"

namespace tenon::cli {

/// Reads a train.yaml or model.yaml with `overrides`, then those of the command line.
/// Errors  mistakes in the files, with their location and key.
TrainDefinition prepare_definition(const std::string& file, const Common& common, std::vector<ConfigOverride> overrides = {});
/// The context of a definition, with the device and the plugins of the command line.
Context context_of(const TrainDefinition& definition, const Common& common);
/// The run of that definition on that context. `overwrite`: as if every `checkpoint` had `overwrite: true`.
TrainingRun prepare_run(const std::string& file, const Common& common, std::vector<ConfigOverride> overrides = {}, bool overwrite = false);

/// Loads the weights to use, and says on stderr which they are: results go to stdout.
void load_weights(TrainingRun& run, const std::string& checkpoint);

/// The predictor of a train.yaml, a folder of checkpoints or the YAML of a checkpoint, with its weights. `checkpoint` replaces that of the
/// run unless it is empty; `data` is the folder of the data files, if the preprocessing depends on them.
Predictor prepare_predictor(const std::string& run, const std::string& checkpoint, const std::string& data, const Common& common);

/// The model's name, or else its file.
std::string model_name(const TrainingRun& run);
/// " in mixed_bfloat16"; empty for float32.
std::string in_precision(const Context& context);

}  // namespace tenon::cli
