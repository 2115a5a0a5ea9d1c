#include "cli/train_run.h"

#include <fmt/core.h>

#include <filesystem>

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

config::TrainDefinition load(const std::string& file, const std::vector<ConfigOverride>& overrides) {
  if (config::load_yaml(file).find("layers") == nullptr) return config::load_train(file, overrides);
  config::TrainDefinition definition;
  definition.model = config::load_model(file, overrides);
  const LayerDefinition& last = definition.model.layers.back();
  if (last.activation == Activation::softmax) {
    definition.loss.loss = Loss::sparse_categorical_crossentropy;
    definition.metrics = {Metric::accuracy};
  }
  definition.file = file;
  return definition;
}

std::vector<ConfigOverride> sets_of(const Common& common) {
  std::vector<ConfigOverride> list;
  for (const std::string& text : common.sets) {
    const config::Assignment assignment = config::parse_assignment(text);
    list.push_back({assignment.key, assignment.value, "--set " + text});
  }
  return list;
}

}  // namespace

Run prepare_run(const std::string& file, const Common& common) {
  config::TrainDefinition definition = load(file, sets_of(common));
  Context context(common.resolve({definition.config}), {}, common.plugins);
  Model model(definition.model);
  model.compile(context, {.optimizer = definition.optimizer,
                          .loss = definition.loss,
                          .metrics = definition.metrics,
                          .parallel_devices = definition.parallel_devices});
  return {std::move(definition), std::move(context), std::move(model)};
}

std::string in_precision(const Run& run) {
  const Precision precision = run.context.config().precision;
  return precision == Precision::float32 ? std::string() : fmt::format(" in {}", name_of(precision));
}

void load_weights(Run& run, const std::string& checkpoint) {
  std::string file = checkpoint;
  std::string folder;
  if (file.empty()) {
    if (!run.definition.checkpoint) throw Error("no weights: pass --checkpoint, or set checkpoint.directory in the YAML");
    folder = run.definition.checkpoint->directory;
  } else if (fs::is_directory(file)) {
    folder = file;
  }
  if (!folder.empty()) {
    file = newest_checkpoint(folder);
    if (file.empty()) throw Error(fmt::format("no checkpoint in {}: train the model first", folder));
  }
  run.model.load(file, Model::Load::weights);
}

}  // namespace tenon::cli
