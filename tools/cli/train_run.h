// SPDX-License-Identifier: Apache-2.0
// cli/train_run.h - the training run of a YAML file and the command line.
#pragma once

#include <string>

#include <tenon/training_run.h>

#include "cli/verbs.h"

namespace tenon::cli {

/// Loads a train.yaml or model.yaml with the overrides, the device and the plugins of the command line.
/// `overwrite`: as if every `checkpoint` had `overwrite: true`.
/// Errors  mistakes in the files, with their location and key.
TrainingRun prepare_run(const std::string& file, const Common& common, bool overwrite = false);

/// " in mixed_bfloat16"; empty for float32.
std::string in_precision(const TrainingRun& run);

}  // namespace tenon::cli
