// SPDX-License-Identifier: Apache-2.0
// Files that hold a model or a training run.
#include <filesystem>

#include <fmt/format.h>
#include <tenon/error.h>
#include <tenon/training_run.h>

#include "config/config_table.h"
#include "config/model_yaml.h"
#include "layers/definition.h"
#include "layers/interface.h"
#include "layers/sources.h"
#include "platform/path.h"

namespace tenon {
namespace config {
namespace {

bool is_model(const Node& tree) {
  return tree.find("layers") != nullptr || tree.find("onnx") != nullptr;
}

/// The loss and the metrics that fit how an output ends.
OutputLoss default_loss(const layers::ModelOutput& output) {
  OutputLoss of{.output = output.name};
  if (output.final_activation == Activation::softmax) of.loss.loss = Loss::sparse_categorical_crossentropy;
  if (output.final_activation == Activation::sigmoid) of.loss.loss = Loss::binary_crossentropy;
  if (of.loss.loss != Loss::mse) of.metrics = {Metric::accuracy};
  return of;
}

TrainDefinition load_definition(Files& files, const std::string& path, const std::vector<ConfigOverride>& overrides) {
  if (!is_model(files.load(path))) return load_train_file(files, path, overrides);
  TrainDefinition definition;
  definition.file = path;
  definition.overrides = overrides;
  definition.model = load_model_file(files, path, overrides);
  ModelDefinition complete = definition.model;
  layers::Sources sources;
  for (const layers::ModelOutput& output : layers::complete_interface(complete, sources).outputs)
    definition.losses.push_back(default_loss(output));
  if (definition.losses.size() == 1) {
    definition.loss = definition.losses[0].loss;
    definition.metrics = definition.losses[0].metrics;
    definition.losses.clear();
  }
  return definition;
}

/// Explains an error for what is also given where a YAML file is expected: the folder of a model, and the file of another framework.
void explain_other_file(const std::string& path, const char* usual_name) {
  const std::filesystem::path file = platform::path_of(path);
  std::error_code ignored;
  for (const char* const name : {usual_name, "train.yaml", "model.yaml"}) {
    if (const std::filesystem::path inside = file / name; std::filesystem::is_regular_file(inside, ignored))
      throw Error(fmt::format("{}: expected a file, got a folder; did you mean {}?", path, platform::text_of(inside)));
  }
  if (file.extension() == ".onnx" && std::filesystem::is_regular_file(file, ignored)) {
    throw Error(
        fmt::format("{}: expected a YAML file, got an ONNX model; name it in a YAML file next to it: `model: {{onnx: {}}}`, with `data` to "
                    "train it",
                    path, platform::text_of(file.filename())));
  }
}

}  // namespace

const Node& Files::load(const std::string& path, const char* usual_name) {
  const auto found = trees_.find(path);
  if (found != trees_.end()) return found->second;
  try {
    return trees_.emplace(path, yaml::load(path)).first->second;
  } catch (const Error&) {
    explain_other_file(path, usual_name);
    throw;
  }
}

std::variant<ModelDefinition, TrainDefinition, Config> load_any(const std::string& path) {
  Files files;
  const Node& tree = files.load(path);
  if (is_model(tree)) return load_model_file(files, path, {});
  if (tree.find("model") != nullptr) return load_train_file(files, path, {});
  return config_from_tree(tree);
}

TrainDefinition load_cut(const std::string& path) {
  Files files;
  const TrainDefinition whole = load_definition(files, path, {});
  if (!whole.model.conformance) throw Error(fmt::format("{}: its model has no `conformance` block, which says how to reduce it", path));
  const ConformanceCut& cut = *whole.model.conformance;
  std::vector<ConfigOverride> overrides;
  for (const auto& [key, value] : cut.set) {
    const std::string text = path + ": conformance.set." + key;
    const std::string of_training = "train.";
    if (!key.starts_with(of_training)) {
      overrides.push_back({(whole.data ? "model." : "") + key, value, text});
    } else if (whole.data) {  // a model.yaml has no training keys to override
      overrides.push_back({key.substr(of_training.size()), value, text});
    }
  }
  TrainDefinition train = load_definition(files, path, overrides);
  layers::scale_width(train.model, cut.width);
  train.fit.batch_size = cut.batch_size;
  return train;
}

}  // namespace config

TrainDefinition load_definition(const std::string& path, const std::vector<ConfigOverride>& overrides) {
  config::Files files;
  return config::load_definition(files, path, overrides);
}

TrainingRun TrainingRun::load(const std::string& path, const std::vector<ConfigOverride>& overrides) {
  TrainDefinition definition = load_definition(path, overrides);
  ConfigSources sources;
  sources.layers = {definition.config};
  const Context context(resolve_config(sources));
  return TrainingRun(std::move(definition), context);
}

Model load_model(const std::string& path, const std::string& checkpoint, const std::vector<ConfigOverride>& overrides) {
  TrainingRun run = TrainingRun::load(path, overrides);
  if (!checkpoint.empty()) run.load_weights(checkpoint);
  return std::move(run.model());
}

}  // namespace tenon
