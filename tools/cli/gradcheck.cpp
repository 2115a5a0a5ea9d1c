// SPDX-License-Identifier: Apache-2.0
// tenon gradcheck FILE.yaml: compares the gradients of a model with finite differences of its loss, in f64, on one small batch.
#include <CLI/CLI.hpp>

#include <memory>
#include <variant>

#include <tenon/gradcheck.h>

#include "cli/common.h"
#include "cli/program.h"
#include "cli/standard_streams.h"
#include "cli/train_run.h"
#include "cli/verbs.h"
#include "train/program/objective.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string file, data;
  std::int64_t batch_size = 4;
  GradientCheckOptions check;
};

/// Scattered numbers in (0, 1), or integers in [0, below).
Tensor synthetic(DType dtype, const Shape& shape, std::int64_t below) {
  if (is_floating(dtype)) {
    Tensor t = Tensor::empty(DType::f64, shape);
    for (std::int64_t i = 0; i < t.count(); ++i) t.data<double>()[i] = (static_cast<double>(i * 7919 % 1009) + 0.5) / 1009;
    return t;
  }
  Tensor t = Tensor::empty(DType::i64, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.data<std::int64_t>()[i] = i * 7919 % 1009 % below;
  return t;
}

/// Samples for a model without data, of its input shape, and targets that fit its output.
std::pair<Tensor, Tensor> synthetic_batch(TrainingRun& run, std::int64_t batch_size) {
  const ModelDefinition& model = run.definition().model;
  if (!model.input_shape) throw Error(run.definition().file + ": expected data or an input shape, got neither");
  const Shape sample(std::span<const std::int64_t>(*model.input_shape));
  std::int64_t rows = 256;
  for (const LayerDefinition& layer : model.layers) {
    if (const auto* const embedding = std::get_if<layers::Embedding>(&layer.kind)) rows = embedding->rows;
  }
  run.model().build(sample);
  const Shape output = run.model().layers().back().output;
  const Tensor x = synthetic(train::input_dtype(model), sample.with_batch(batch_size), rows);
  const auto [dtype, targets] = train::target_type(run.definition().loss, output, batch_size);
  if (is_floating(dtype)) return {x, synthetic(DType::f64, targets, 1)};
  if (output.rank() == 0) throw Error(run.definition().file + ": the loss expects scores of shape (batch, classes), got a scalar");
  return {x, synthetic(dtype, targets, output[output.rank() - 1])};
}

GradientReport check(TrainingRun& run, const Arguments& arguments) {
  const TrainDefinition& definition = run.definition();
  const ModelDefinition& model = definition.model;
  if (!definition.data) {
    if (!definition.losses.empty()) throw Error(definition.file + ": expected data for a model with several outputs, got none");
    const auto [x, y] = synthetic_batch(run, arguments.batch_size);
    return check_gradients(run.context(), model, definition.loss, x, y, arguments.check);
  }
  const DataSplits data = run.load_data(arguments.data);
  Batches batches(data.train, {.batch_size = std::min(arguments.batch_size, data.train->size()), .shuffle = false, .workers = 0});
  batches.start(0);
  const Batch* first = batches.next();
  if (definition.losses.empty()) return check_gradients(run.context(), model, definition.loss, first->x(), first->y(), arguments.check);
  NamedTensors inputs, targets;
  for (std::size_t i = 0; i < first->inputs.size(); ++i) inputs[data.train->inputs()[i].name] = first->inputs[i];
  for (std::size_t i = 0; i < first->targets.size(); ++i) targets[data.train->targets()[i].name] = first->targets[i];
  return check_gradients(run.context(), model, definition.losses, inputs, targets, arguments.check);
}

void run_gradcheck(const Arguments& arguments) {
  TrainingRun run = prepare_run(arguments.file, arguments.common);
  const GradientReport report = check(run, arguments);
  print(report.str());
  if (!report.passed()) set_exit_code(1);
}

}  // namespace

void add_gradcheck_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("gradcheck", "compare the gradients of a model with finite differences of its loss, in f64");
  command->add_option("file", arguments->file, "train.yaml, or model.yaml with an input shape")->required()->type_name("FILE");
  arguments->common.add_to(*command);
  command->add_option("--samples", arguments->check.samples, "elements to check of each parameter")->check(CLI::PositiveNumber);
  command->add_option("--tolerance", arguments->check.tolerance, "largest relative difference")->check(CLI::PositiveNumber);
  command->add_option("--batch", arguments->batch_size, "batch size")->check(CLI::PositiveNumber);
  command->add_option("--data", arguments->data, "folder of the data files")->type_name("DIR");
  command->callback([arguments] { run_gradcheck(*arguments); });
}

}  // namespace tenon::cli
