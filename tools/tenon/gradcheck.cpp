// tenon gradcheck FILE.yaml: the gradients of a model against differences of its loss, in f64, on one small batch.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <optional>

#include <tenon/gradcheck.h>

#include "tenon/train_run.h"
#include "tenon/verbs.h"
#include "train/datasets.h"
#include "train/objective.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string file, data;
  std::int64_t batch_size = 4;
  GradientCheckOptions check;
};

/// Numbers without pattern in (0, 1), or below `below` for integers.
Tensor made_up(DType dtype, const Shape& shape, std::int64_t below) {
  if (is_floating(dtype)) {
    Tensor t = Tensor::empty(DType::f64, shape);
    for (std::int64_t i = 0; i < t.count(); ++i) t.data<double>()[i] = (static_cast<double>(i * 7919 % 1009) + 0.5) / 1009;
    return t;
  }
  Tensor t = Tensor::empty(DType::i64, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.data<std::int64_t>()[i] = i * 7919 % 1009 % below;
  return t;
}

/// Samples for a model that names no data: its input's shape, and targets that fit its output.
std::pair<Tensor, Tensor> made_up_batch(Run& run, std::int64_t batch_size) {
  const ModelDefinition& model = run.definition.model;
  if (!model.input_shape) throw Error(run.definition.file + ": names neither data nor the shape of its input; wanted one of them");
  const auto with_batch = [&](const Shape& sample) {
    Shape shape{batch_size};
    for (const std::int64_t d : sample) shape.push_back(d);
    return shape;
  };
  const Shape sample(std::span<const std::int64_t>(*model.input_shape));
  std::int64_t rows = 256;
  for (const LayerDefinition& layer : model.layers) {
    if (layer.kind == LayerDefinition::Kind::embedding) rows = layer.rows;
  }
  run.model.build(sample);
  const Shape output = run.model.layers().back().output;
  const Tensor x = made_up(train::input_dtype(model), with_batch(sample), rows);
  if (train::rule_of(run.definition.loss.loss).targets != train::Targets::labels) return {x, made_up(DType::f64, with_batch(output), 1)};
  if (output.rank() == 0) throw Error(run.definition.file + ": the loss wants scores (batch, classes), the model gives one number");
  return {x, made_up(DType::i64, {batch_size}, output[output.rank() - 1])};
}

void run_gradcheck(const Arguments& arguments) {
  Run run = prepare_run(arguments.file, arguments.common);
  std::optional<Batches> batches;
  std::pair<Tensor, Tensor> samples;
  if (run.definition.data.where.empty()) {  // a bare model.yaml
    samples = made_up_batch(run, arguments.batch_size);
  } else {
    const train::DataSplits data = train::make_data(run.definition.data, arguments.data, run.context.config().seed);
    batches.emplace(data.train,
                    BatchOptions{.batch_size = std::min(arguments.batch_size, data.train->size()), .shuffle = false, .workers = 0});
    batches->start(0);
    const Batch* first = batches->next();
    samples = {first->x, first->y};
  }
  const GradientReport report =
      check_gradients(run.context, run.definition.model, run.definition.loss, samples.first, samples.second, arguments.check);
  std::fputs(report.str().c_str(), stdout);
  if (!report.passed()) set_exit_code(1);
}

}  // namespace

void add_gradcheck_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("gradcheck", "compare a model's gradients with differences of its loss, in f64");
  command->add_option("file", arguments->file, "train.yaml, or a model.yaml that says its input's shape")->required()->type_name("FILE");
  arguments->common.add_to(*command);
  command->add_option("--samples", arguments->check.samples, "elements of each parameter")->check(CLI::PositiveNumber);
  command->add_option("--tolerance", arguments->check.tolerance, "largest relative difference")->check(CLI::PositiveNumber);
  command->add_option("--batch", arguments->batch_size, "samples of the batch")->check(CLI::PositiveNumber);
  command->add_option("--data", arguments->data, "folder with the data files")->type_name("DIR");
  command->callback([arguments] { run_gradcheck(*arguments); });
}

}  // namespace tenon::cli
