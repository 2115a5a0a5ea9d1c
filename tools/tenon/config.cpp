// tenon config check FILE | print
#include <memory>

#include <tenon/config.h>

#include "config/model_yaml.h"
#include "config/yaml_tree.h"
#include "tenon/backend_report.h"
#include "tenon/output.h"
#include "tenon/verbs.h"

namespace tenon::cli {
namespace {

struct CheckArguments {
  std::string file;
};
struct PrintArguments {
  Common common;
  bool schema = false;
};

/// Reads the file as what it is. Whatever is wrong with it is thrown with file, line and key.
void check(const CheckArguments& arguments) {
  const config::Node tree = config::load_yaml(arguments.file);
  if (tree.find("layers") != nullptr) {
    const ModelDefinition model = config::load_model(arguments.file);
    print(fmt::format("{}: a model of {} layers, without mistakes\n", arguments.file, model.layers.size()));
  } else if (tree.find("model") != nullptr) {
    const config::TrainDefinition run = config::load_train(arguments.file);
    print(fmt::format("{}: a training run of the model '{}', without mistakes\n", arguments.file, run.model.name));
  } else {
    const Config config = load_config(arguments.file);
    print(fmt::format("{}: a configuration that sets {} key{}, without mistakes\n", arguments.file, config.origins.size(),
                      config.origins.size() == 1 ? "" : "s"));
  }
}

}  // namespace

void add_config_verb(CLI::App& app) {
  CLI::App* command = app.add_subcommand("config", "check a YAML file, or print the configuration in force");
  command->require_subcommand(1);

  auto check_arguments = std::make_shared<CheckArguments>();
  CLI::App* check_command = command->add_subcommand("check", "find mistakes in a configuration, a model.yaml or a train.yaml");
  check_command->add_option("file", check_arguments->file, "the YAML file")->required()->type_name("FILE");
  check_command->callback([check_arguments] { check(*check_arguments); });

  auto print_arguments = std::make_shared<PrintArguments>();
  CLI::App* print_command = command->add_subcommand("print", "every key with its value and where that came from");
  print_arguments->common.add_to(*print_command);
  print_command->add_flag("--schema", print_arguments->schema, "every key with its default, type, range and meaning instead");
  print_command->callback(
      [print_arguments] { print(print_arguments->schema ? config_schema() : to_yaml(resolve_with_sets(print_arguments->common))); });
}

}  // namespace tenon::cli
