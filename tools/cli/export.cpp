// SPDX-License-Identifier: Apache-2.0
// tenon export MODEL --onnx FILE: writes a model as an ONNX file.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/error.h>
#include <tenon/onnx.h>

#include "cli/common.h"
#include "cli/difference.h"
#include "cli/onnx_inputs.h"
#include "cli/program.h"
#include "cli/standard_streams.h"
#include "cli/train_run.h"
#include "cli/verbs.h"
#include "train/run_record.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string model, checkpoint, file;
  onnx::ExportOptions options;
  bool check = false;
};

/// Imports the file and compares it with the model on random input, at two batch sizes if it takes any.
/// Tolerance  1024 epsilon of the model's dtype: the ops are the same, but sums are taken in another order, and fused ops round less often.
void check(TrainingRun& run, const Arguments& arguments) {
  onnx::Model file = onnx::Model::load(arguments.file, run.context());
  const double tolerance =
      1024 * (run.definition().model.dtype == DType::f64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon());
  std::mt19937_64 random(1);
  double worst = 0;
  for (const std::int64_t batch : arguments.options.batch == 0 ? std::vector<std::int64_t>{1, 3} : std::vector{arguments.options.batch}) {
    NamedTensors of_model, of_file;
    for (std::size_t i = 0; i < file.inputs().size(); ++i) {
      const onnx::ValueType& input = file.inputs()[i];
      const SampleType& sample = run.model().inputs()[i];
      of_model[sample.name] = of_file[input.name] = random_input(input.dtype, sample.shape.with_batch(batch), random);
    }
    const NamedTensors expected = run.model().predict(of_model, batch);
    const std::vector<Tensor>& results = file.run(of_file);
    for (std::size_t i = 0; i < results.size(); ++i)
      worst = std::max(worst, largest_difference(expected.at(run.model().outputs()[i].name), results[i].to_host(), 1, "the file"));
  }
  print(fmt::format("Checked: imported again, it differs by {:.2g} of the largest output, at most {:.2g} expected\n", worst, tolerance));
  if (!(worst <= tolerance)) set_exit_code(1);
}

void run_export(const Arguments& arguments) {
  const train::SavedRun saved = train::find_run(arguments.model, arguments.checkpoint);
  TrainDefinition definition = prepare_definition(saved.definition, arguments.common, saved.overrides);
  Config config = arguments.common.resolve_over(definition.config);
  config.precision = Precision::float32;  // the file has the parameters' dtype, whatever the training computes in
  TrainingRun run(std::move(definition), Context(config, {}, arguments.common.plugins));
  if (!saved.checkpoint.empty() || run.definition().checkpoint) {
    load_weights(run, saved.checkpoint);
  } else {
    print_message("Weights: initial ones; --checkpoint names trained ones\n");
  }
  run.model().export_onnx(arguments.file, arguments.options);
  print(fmt::format("Wrote {}\n", arguments.file));
  if (arguments.check) check(run, arguments);
}

}  // namespace

void add_export_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("export", "write a model with its weights as an ONNX file");
  command->add_option("model", arguments->model, "model.yaml, train.yaml, a folder of checkpoints, or the YAML of a checkpoint")
      ->required()
      ->type_name("MODEL");
  command->add_option("--onnx", arguments->file, "the file to write")->required()->type_name("FILE");
  command->add_option("--opset", arguments->options.opset, "version of the operators")->type_name("N")->capture_default_str();
  command->add_option("--batch", arguments->options.batch, "fixed batch size (default: any)")->type_name("N")->check(CLI::PositiveNumber);
  command->add_option("--checkpoint", arguments->checkpoint, "weights: the YAML of a checkpoint, or a folder of checkpoints")
      ->type_name("PATH");
  command->add_flag("--check", arguments->check, "import the file again and compare it with the model; exit code 1 if they differ");
  arguments->common.add_to(*command);
  command->callback([arguments] { run_export(*arguments); });
}

}  // namespace tenon::cli
