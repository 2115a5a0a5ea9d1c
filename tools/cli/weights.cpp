// SPDX-License-Identifier: Apache-2.0
// tenon weights export | import | diff
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <utility>

#include <tenon/weights.h>

#include "cli/common.h"
#include "cli/program.h"
#include "cli/standard_streams.h"
#include "cli/train_run.h"
#include "cli/verbs.h"
#include "core/table.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string definition, checkpoint, folder, other;
  WeightsFile weights;
  double tolerance = 0;
};

void run_export(const Arguments& arguments) {
  TrainingRun run = prepare_run(arguments.definition, arguments.common);
  const Model::Position position = run.load_weights(arguments.checkpoint);
  export_weights(run.model(), arguments.weights);
  print(fmt::format("Wrote the weights of {} to {}\n", position.file, arguments.weights.file));
}

void run_import(const Arguments& arguments) {
  TrainingRun run = prepare_run(arguments.definition, arguments.common);
  const WeightsReport report = import_weights(run.model(), arguments.weights);
  run.model().save(arguments.folder, "imported");
  print(fmt::format("{}\nWrote {}/imported.yaml\n", report.str(), arguments.folder));
}

void run_diff(const Arguments& arguments) {
  const std::vector<WeightDifference> differences = compare_weights(arguments.weights.file, arguments.other, arguments.tolerance);
  if (differences.empty()) return print("No differences\n");
  Table table({"tensor", "difference"});
  for (const WeightDifference& difference : differences) table.add({difference.name, difference.text});
  print(table.str());
  set_exit_code(1);
}

}  // namespace

void add_weights_verb(CLI::App& app) {
  CLI::App* weights = app.add_subcommand("weights", "export, import and compare the weights of models");
  weights->require_subcommand(1);
  const auto add = [&](const char* verb, const char* help, void (*body)(const Arguments&)) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = weights->add_subcommand(verb, help);
    command->callback([arguments, body] { body(*arguments); });
    return std::make_pair(command, arguments);
  };
  const auto add_definition = [](CLI::App* command, Arguments& arguments) {
    command->add_option("definition", arguments.definition, "train.yaml or model.yaml")->required()->type_name("YAML");
    arguments.common.add_to(*command);
    command->add_option("--map", arguments.weights.map, "rules that pair names, one a line: ours: theirs")->type_name("FILE");
    command->add_flag("--transpose", arguments.weights.transpose, "dense kernels are (out, in) in the file, as in PyTorch");
  };
  const auto [exporting, export_arguments] = add("export", "write the weights of a checkpoint to a .safetensors or .npz file", run_export);
  add_definition(exporting, *export_arguments);
  exporting->add_option("file", export_arguments->weights.file, "the file to write")->required()->type_name("FILE");
  exporting->add_option("--checkpoint", export_arguments->checkpoint, "the YAML of a checkpoint, or a folder of checkpoints")
      ->type_name("PATH");
  const auto [importing, import_arguments] = add("import", "make a checkpoint of the weights in a .safetensors or .npz file", run_import);
  add_definition(importing, *import_arguments);
  importing->add_option("file", import_arguments->weights.file, "the file to read")->required()->type_name("FILE");
  importing->add_option("--out", import_arguments->folder, "the folder of the checkpoint")->required()->type_name("DIR");
  importing->add_flag_callback(
      "--no-strict", [arguments = import_arguments] { arguments->weights.strict = false; },
      "allow parameters and tensors without a partner");
  const auto [comparing, diff_arguments] = add("diff", "compare two files of weights; exit code 1 if they differ", run_diff);
  comparing->add_option("a", diff_arguments->weights.file, ".safetensors, .npz or checkpoint")->required()->type_name("FILE");
  comparing->add_option("b", diff_arguments->other, "the file to compare with")->required()->type_name("FILE");
  comparing->add_option("--tolerance", diff_arguments->tolerance, "the largest difference of elements that is ignored")->type_name("X");
}

}  // namespace tenon::cli
