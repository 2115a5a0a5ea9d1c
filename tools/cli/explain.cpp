// SPDX-License-Identifier: Apache-2.0
// tenon explain: reports where each node of a training step or of an ONNX model runs and what it costs. Only --roofline and --peaks execute
// nodes.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <optional>

#include <tenon/error.h>
#include <tenon/onnx.h>

#include "cli/common.h"
#include "cli/explanation.h"
#include "cli/onnx_inputs.h"
#include "cli/peaks.h"
#include "cli/roofline.h"
#include "cli/train_run.h"
#include "cli/verbs.h"
#include "platform/path.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  OnnxInputs inputs;
  std::string file, data, format, peaks;
  std::int64_t batch_size = 0;
  bool roofline = false;

  /// Absent if no roofline is asked for. Errors  a format that has no place for it.
  std::optional<RooflineOptions> roofline_options() const {
    if ((roofline || !peaks.empty()) && format == "dot")
      throw Error(fmt::format("{}: expected --format text or json, got dot", peaks.empty() ? "--roofline" : "--peaks"));
    if (!peaks.empty()) return RooflineOptions{&peaks_of(peaks)};
    return roofline ? std::optional<RooflineOptions>(RooflineOptions{}) : std::nullopt;
  }
};

void explain_onnx(const Arguments& arguments) {
  if (arguments.batch_size > 0 || !arguments.data.empty())
    throw Error(
        fmt::format("--batch, --data: expected a train.yaml or model.yaml, got {}; sizes of an ONNX model are given by "
                    "--shape NAME=1x3x224x224",
                    arguments.file));
  const std::optional<RooflineOptions> roofline = arguments.roofline_options();
  const Context context(arguments.common.resolve(), {}, arguments.common.plugins);
  onnx::Model model = onnx::Model::load(arguments.file, context);
  show(explain(model, context, arguments.file, arguments.inputs, roofline), arguments.format);
}

void explain_training(const Arguments& arguments) {
  if (arguments.inputs.given())
    throw Error(fmt::format("--input, --shape: expected an ONNX model, a file whose name ends in .onnx, got {}", arguments.file));
  const std::optional<RooflineOptions> roofline = arguments.roofline_options();
  TrainingRun run = prepare_run(arguments.file, arguments.common);
  const TrainDefinition& definition = run.definition();
  if (!run.model().built() && definition.data) run.model().build_for(*run.load_data(arguments.data).train);
  const std::int64_t batch_size = arguments.batch_size > 0 ? arguments.batch_size : definition.fit.batch_size;
  const auto measure = [&] { return measure_roofline(run, batch_size, *roofline); };
  show({.title = fmt::format("Training step of {} with a batch of {}{}", model_name(run), batch_size, in_precision(run.context())),
        .facts = {{"model", model_name(run)}, {"batch_size", batch_size}, {"precision", name_of(run.context().config().precision)}},
        .devices = run.context().devices(),
        .placement = run.model().explain(batch_size),
        .program = [&]() -> const Program& { return run.model().program_of_step(batch_size); },
        .roofline = roofline ? std::function<Roofline()>(measure) : nullptr},
       arguments.format);
}

}  // namespace

void add_explain_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("explain", "show where each node of a training step or an ONNX model runs, why, and what it costs");
  command->add_option("file", arguments->file, "train.yaml, model.yaml or an ONNX model, NAME.onnx")->required()->type_name("FILE");
  arguments->common.add_to(*command);
  add_format(*command, arguments->format, {"text", "json", "dot"});
  command->add_option("--batch", arguments->batch_size, "batch size (default: that of the file)")->check(CLI::PositiveNumber);
  command->add_option("--data", arguments->data, "folder of the data files, if they determine the input shape")->type_name("DIR");
  arguments->inputs.add_to(*command);
  command->add_flag("--roofline", arguments->roofline,
                    "also time some runs on synthetic samples: flops, bytes, time and % of peak per layer and kernel");
  command
      ->add_option("--peaks", arguments->peaks,
                   "--roofline with times that are computed from the peaks of another device: " + names_of_peaks())
      ->type_name("NAME");
  command->callback([arguments] {
    const bool onnx = platform::path_of(arguments->file).extension() == ".onnx";
    onnx ? explain_onnx(*arguments) : explain_training(*arguments);
  });
}

}  // namespace tenon::cli
