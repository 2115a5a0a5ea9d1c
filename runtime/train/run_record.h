// SPDX-License-Identifier: Apache-2.0
// train/run_record.h - run.json in a folder of checkpoints: what it takes to predict with them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tenon/training_run.h>

namespace tenon::train {

/// What a prediction starts from.
struct SavedRun {
  std::string definition;                 ///< the train.yaml or model.yaml
  std::vector<ConfigOverride> overrides;  ///< those of the training
  std::string checkpoint;                 ///< as in TrainingRun::load_weights
  std::optional<Preprocessing> preprocessing;
};

/// Writes run.json for a definition that was read from a file. The file's path is relative to the folder, so that both can be moved
/// together. Errors  those of writing a file.
void save_run(const std::string& folder, const TrainDefinition& definition, const Preprocessing& preprocessing);

/// The run that the argument of `tenon predict` names: a train.yaml or model.yaml, a folder of checkpoints, or the YAML of a checkpoint.
/// `checkpoint` replaces that of the run unless it is empty.
/// Errors  no such file; a folder of checkpoints without run.json; a damaged one.
SavedRun find_run(const std::string& run, const std::string& checkpoint);
/// The preprocessing in the run.json of a folder of checkpoints, or beside a checkpoint; nothing: there is no such file.
std::optional<Preprocessing> saved_preprocessing(const std::string& checkpoint);

}  // namespace tenon::train
