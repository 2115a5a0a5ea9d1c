// SPDX-License-Identifier: Apache-2.0
#include "bench/served_model.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <memory>
#include <random>
#include <utility>

#include <tenon/error.h>
#include <tenon/onnx.h>
#include <tenon/training_run.h>

namespace tenon::bench {
namespace {

ServedModel load_onnx(const Options& options, const Context& context) {
  const auto model = std::make_shared<onnx::Model>(onnx::Model::load(options.model, context));
  for (const onnx::ValueType& input : model->inputs()) {
    if (input.ranked && (input.shape.empty() || input.shape.front().is_fixed()))
      throw Error(fmt::format("{}: expected inputs whose first dimension is a batch of any size, got {}: export the model so",
                              options.model, input.str()));
  }
  ServedModel served;
  served.function = [model](const NamedTensors& inputs) {
    const std::vector<Tensor>& results = model->run(inputs);
    NamedTensors outputs;
    for (std::size_t i = 0; i < results.size(); ++i) outputs.emplace(model->outputs()[i].name, results[i]);
    return outputs;
  };
  for (int client = 0; client < options.clients; ++client)
    served.requests.push_back(options.inputs.tensors(*model, 0, static_cast<std::uint64_t>(client) + 1));
  served.inputs = options.inputs.str(*model, served.requests.front());
  return served;
}

ServedModel load_yaml(const Options& options, const Context& context) {
  if (options.inputs.given()) throw Error(fmt::format("{}: expected --input and --shape for ONNX files only", options.model));
  const auto run = std::make_shared<TrainingRun>(load_definition(options.model), context);
  if (const auto& shape = run->definition().model.input_shape; shape && !run->model().built())
    run->model().build(Shape(std::span<const std::int64_t>(*shape)));
  ServedModel served;
  served.function = [run](const NamedTensors& inputs) { return run->model().predict(inputs, inputs.begin()->second.shape()[0]); };
  std::vector<std::string> types;
  for (int client = 0; client < options.clients; ++client) {
    std::mt19937_64 random(static_cast<std::uint64_t>(client) + 1);
    NamedTensors request;
    for (const SampleType& input : run->model().inputs()) {
      request[input.name] = cli::random_input(input.dtype, input.shape.with_batch(1), random);
      if (client == 0) types.push_back(fmt::format("{} {} random", input.name, request[input.name].str()));
    }
    served.requests.push_back(std::move(request));
  }
  served.inputs = fmt::format("{}", fmt::join(types, ", "));
  return served;
}

}  // namespace

ServedModel load_served_model(const Options& options, const Context& context) {
  ServedModel served = options.model.ends_with(".onnx") ? load_onnx(options, context) : load_yaml(options, context);
  const NamedTensors& request = served.requests.front();
  for (const auto& [name, tensor] : request) {
    if (tensor.shape().rank() == 0)
      throw Error(fmt::format("{}: expected inputs with a first axis of samples, got '{}' {}", options.model, name, tensor.str()));
  }
  served.samples = request.begin()->second.shape()[0];
  if (served.samples > options.max_batch)
    throw Error(fmt::format("--max-batch: expected at least {}, the samples of a request ({}), got {}", served.samples, served.inputs,
                            options.max_batch));
  return served;
}

}  // namespace tenon::bench
