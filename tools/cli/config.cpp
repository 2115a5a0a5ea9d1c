// SPDX-License-Identifier: Apache-2.0
// tenon config check FILE | print
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <variant>

#include <tenon/config.h>

#include "cli/backend_report.h"
#include "cli/common.h"
#include "cli/standard_streams.h"
#include "cli/verbs.h"
#include "config/model_yaml.h"
#include "config/schema.h"
#include "text/counted.h"

namespace tenon::cli {
namespace {

struct CheckArguments {
  std::string file;
  bool trust = false;
};
struct PrintArguments {
  Common common;
  bool schema = false;
};

std::string text_of(const ModelDefinition& model) {
  return "a model of " + counted(model.layers.size(), "layer");
}
std::string text_of(const TrainDefinition& run) {
  return "a training run of " + (run.model.name.empty() ? text_of(run.model) : fmt::format("the model '{}'", run.model.name));
}
std::string text_of(const Config& config) {
  return "a configuration that sets " + counted(config.origins.size(), "key");
}

/// Reads the file as a model, a training run or a configuration. Throws all mistakes, with file, line and key of each.
void check(const CheckArguments& arguments) {
  const auto read = config::load_any(arguments.file);
  if (const auto* run = std::get_if<TrainDefinition>(&read)) {
    ConfigSources sources;
    sources.environment = {};
    sources.layers = {run->config};
    sources.trust_layers = arguments.trust;
    resolve_config(sources);  // throws for keys that a training file may set only if it is trusted
  }
  const std::string text = std::visit([](const auto& definition) { return text_of(definition); }, read);
  print(fmt::format("{}: {}, no errors\n", arguments.file, text));
}

}  // namespace

void add_config_verb(CLI::App& app) {
  CLI::App* command = app.add_subcommand("config", "check a YAML file, or print the effective configuration");
  command->require_subcommand(1);

  auto check_arguments = std::make_shared<CheckArguments>();
  CLI::App* check_command = command->add_subcommand("check", "check a configuration, a model.yaml or a train.yaml for errors");
  check_command->add_option("file", check_arguments->file, "the YAML file")->required()->type_name("FILE");
  check_command->add_flag("--trust", check_arguments->trust, trust_help);
  check_command->callback([check_arguments] { check(*check_arguments); });

  auto print_arguments = std::make_shared<PrintArguments>();
  CLI::App* print_command = command->add_subcommand("print", "print every key with its value and origin");
  print_arguments->common.add_to(*print_command);
  print_command->add_flag("--schema", print_arguments->schema,
                          "print instead every key that the files may have, with type, range and default");
  print_command->callback(
      [print_arguments] { print(print_arguments->schema ? config::whole_schema() : to_yaml(print_arguments->common.resolve())); });
}

}  // namespace tenon::cli
