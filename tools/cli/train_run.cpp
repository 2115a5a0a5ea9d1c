// SPDX-License-Identifier: Apache-2.0
#include "cli/train_run.h"

#include <fmt/core.h>

#include <variant>

#include <tenon/callbacks.h>

#include "yaml/tree.h"

namespace tenon::cli {

TrainingRun prepare_run(const std::string& file, const Common& common, bool overwrite) {
  std::vector<ConfigOverride> overrides;
  for (const std::string& text : common.sets) {
    const yaml::Assignment assignment = yaml::parse_assignment(text);
    overrides.push_back({assignment.key, assignment.value, "--set " + text});
  }
  TrainDefinition definition = load_definition(file, overrides);
  if (definition.checkpoint) definition.checkpoint->overwrite |= overwrite;
  for (CallbackDefinition& callback : definition.callbacks) {
    if (auto* checkpoint = std::get_if<Checkpoint::Options>(&callback)) checkpoint->overwrite |= overwrite;
  }
  const Context context(common.resolve({definition.config}), {}, common.plugins);
  return TrainingRun(std::move(definition), context);
}

std::string in_precision(const TrainingRun& run) {
  const Precision precision = run.context().config().precision;
  return precision == Precision::float32 ? std::string() : fmt::format(" in {}", name_of(precision));
}

}  // namespace tenon::cli
