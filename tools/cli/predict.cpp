// SPDX-License-Identifier: Apache-2.0
// tenon predict RUN: the predictions of a trained model for files or for the test set.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/predictor.h>

#include "cli/common.h"
#include "cli/standard_streams.h"
#include "cli/trace_file.h"
#include "cli/train_run.h"
#include "cli/verbs.h"
#include "io/atomic_file.h"
#include "train/prediction_text.h"
#include "train/program/model_setup.h"
#include "train/program/objective.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string run, checkpoint, data, json, format, trace;
  std::vector<std::string> inputs;
  std::int64_t count = 10;
  std::size_t top_k = 1;
};

std::vector<Prediction> predictions(Predictor& predictor, const Arguments& arguments) {
  if (arguments.inputs.empty()) {
    const DataSplits data = predictor.run().load_data(arguments.data);
    return predictor.predict_test(data, arguments.count);
  }
  std::vector<Prediction> all;
  for (const std::string& input : arguments.inputs) {
    for (Prediction& p : predictor.predict_files(input)) all.push_back(std::move(p));
  }
  return all;
}

void run_predict(const Arguments& arguments) {
  Predictor predictor = prepare_predictor(arguments.run, arguments.checkpoint, arguments.data, arguments.common);
  const TraceFile trace(predictor.run().context(), arguments.trace);
  const std::vector<Prediction> all = predictions(predictor, arguments);
  const TrainDefinition& definition = predictor.run().definition();
  const std::size_t outputs = predictor.run().model().outputs().size();
  if (arguments.format == "csv" && outputs > 1)
    throw Error(fmt::format("--format csv: expected a model with one output, got {}; use json", outputs));
  const auto text_of = [&](const Prediction& p) {
    const OutputLoss* const loss = train::loss_of(definition, p.output_name);
    const bool has_loss = loss != nullptr || p.output_name.empty();
    return train::PredictionText{.top_k = arguments.top_k,
                                 .probabilities = has_loss && train::gives_probabilities(loss == nullptr ? definition.loss : loss->loss)};
  };
  std::optional<io::AtomicFile> file;
  if (!arguments.json.empty()) file.emplace(arguments.json);
  if (arguments.format == "csv" && !all.empty()) print(text_of(all[0]).csv_header(all[0]) + "\n");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const train::PredictionText text = text_of(all[i]);
    const auto json = [&] { return text.json(all[i], static_cast<std::int64_t>(i / outputs)) + "\n"; };
    if (file) {
      const std::string line = json();
      file->write(line.data(), line.size());
    }
    print(arguments.format == "json" ? json() : (arguments.format == "csv" ? text.csv(all[i]) : text.line(all[i])) + "\n");
  }
  if (file) file->commit();
}

}  // namespace

void add_predict_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("predict", "print the predictions of a trained model for files, or for samples of the test set");
  command->add_option("run", arguments->run, "train.yaml, a folder of checkpoints, or the YAML of a checkpoint")
      ->required()
      ->type_name("RUN");
  command->add_option("--input", arguments->inputs, "images, folders of images, or .npy arrays; default: the test set")->type_name("PATH");
  command->add_option("--count", arguments->count, "number of samples of the test set")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--top-k", arguments->top_k, "number of classes for each sample")
      ->type_name("K")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_format(*command, arguments->format, {"text", "json", "csv"});
  command->add_option("--json", arguments->json, "also write the results as JSON Lines")->type_name("FILE");
  command->add_option("--data", arguments->data, "folder of the data files")->type_name("DIR");
  command->add_option("--checkpoint", arguments->checkpoint, "weights: the YAML of a checkpoint, or a folder of checkpoints")
      ->type_name("PATH");
  command->add_option("--trace", arguments->trace, "write a trace for Perfetto or chrome://tracing; slows the run down")->type_name("FILE");
  arguments->common.add_to(*command);
  command->callback([arguments] { run_predict(*arguments); });
}

}  // namespace tenon::cli
