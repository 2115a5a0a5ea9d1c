// SPDX-License-Identifier: Apache-2.0
#include "cli/train_run.h"

#include <fmt/core.h>

#include <utility>
#include <variant>

#include <tenon/callbacks.h>

#include "cli/standard_streams.h"
#include "train/run_record.h"
#include "yaml/tree.h"

namespace tenon::cli {

TrainDefinition prepare_definition(const std::string& file, const Common& common, std::vector<ConfigOverride> overrides) {
  for (ConfigOverride& change : common.set_overrides()) overrides.push_back(std::move(change));
  return load_definition(file, overrides);
}

Context context_of(const TrainDefinition& definition, const Common& common) {
  return Context(common.resolve_over(definition.config), {}, common.plugins);
}

TrainingRun prepare_run(const std::string& file, const Common& common, std::vector<ConfigOverride> overrides, bool overwrite) {
  TrainDefinition definition = prepare_definition(file, common, std::move(overrides));
  if (definition.checkpoint) definition.checkpoint->overwrite |= overwrite;
  for (CallbackDefinition& callback : definition.callbacks) {
    if (auto* checkpoint = std::get_if<Checkpoint::Options>(&callback)) checkpoint->overwrite |= overwrite;
  }
  const Context context = context_of(definition, common);
  return TrainingRun(std::move(definition), context);
}

void load_weights(TrainingRun& run, const std::string& checkpoint) {
  const Model::Position position = run.load_weights(checkpoint);
  print_message(fmt::format("Checkpoint: {} (epoch {}, step {})\n", position.file, position.epoch, position.step));
}

Predictor prepare_predictor(const std::string& run, const std::string& checkpoint, const std::string& data, const Common& common) {
  train::SavedRun saved = train::find_run(run, checkpoint);
  TrainingRun prepared = prepare_run(saved.definition, common, saved.overrides);
  load_weights(prepared, saved.checkpoint);
  if (!saved.preprocessing) saved.preprocessing = train::saved_preprocessing(saved.checkpoint);
  return saved.preprocessing ? Predictor(std::move(prepared), *saved.preprocessing) : Predictor(std::move(prepared), data);
}

std::string model_name(const TrainingRun& run) {
  const ModelDefinition& model = run.definition().model;
  if (!model.name.empty()) return model.name;
  return model.file.empty() ? run.definition().file : model.file;
}

std::string in_precision(const Context& context) {
  const Precision precision = context.config().precision;
  return precision == Precision::float32 ? std::string() : fmt::format(" in {}", name_of(precision));
}

}  // namespace tenon::cli
