// cli/train_run.h - builds a model that is ready to train from a YAML file and the command line.
#pragma once

#include <memory>
#include <string>

#include <tenon/model.h>

#include "config/model_yaml.h"
#include "train/datasets.h"

#include "cli/verbs.h"

namespace tenon::cli {

/// A model, its context and its training run.
struct Run {
  config::TrainDefinition definition;
  Context context;
  Model model;  ///< compiled; built if the YAML gives the input shape
};

/// Loads a train.yaml, or a model.yaml with the defaults of a training run: sparse_categorical_crossentropy and accuracy if the model ends
/// in a softmax, otherwise mse.
/// Errors  mistakes in the files, with their location and key.
Run prepare_run(const std::string& file, const Common& common);

/// " in mixed_bfloat16"; empty for float32.
std::string in_precision(const Run& run);

/// Loads weights from `checkpoint` (a YAML, or a folder whose newest checkpoint is loaded); if empty, from the folder of the definition.
/// Errors  no checkpoint is found.
void load_weights(Run& run, const std::string& checkpoint);

}  // namespace tenon::cli
