// tenon/train_run.h - from a YAML file and the command line to a model that is ready to train.
#pragma once

#include <memory>
#include <string>

#include <tenon/model.h>

#include "config/model_yaml.h"
#include "train/datasets.h"

#include "tenon/verbs.h"

namespace tenon::cli {

/// A model, what it runs on, and what to do with it.
struct Run {
  config::TrainDefinition definition;
  Context context;
  Model model;  ///< compiled; built if the YAML gives the shape of its input
};

/// FILE is a train.yaml, or a model.yaml, which is then taken with the defaults of a training run: sparse_categorical_crossentropy and
/// accuracy if it ends in a softmax, else mse. Errors: those of the files, naming place and key.
Run prepare_run(const std::string& file, const Common& common);

/// " in mixed_bfloat16"; empty for float32.
std::string in_precision(const Run& run);

/// Loads weights from `checkpoint` (a YAML, or a folder: its newest one), or from the folder that the definition names.
/// Errors  there is none.
void load_weights(Run& run, const std::string& checkpoint);

}  // namespace tenon::cli
