// SPDX-License-Identifier: Apache-2.0
#include "training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <system_error>
#include <variant>

#include <tenon/error.h>

#include "exec/registered.h"
#include "platform/path.h"
#include "train/program/builder.h"
#include "train/program/objective.h"

namespace tenon::conformance {
namespace {

namespace fs = std::filesystem;

/// "convnet/train_batch_norm.yaml" is convnet_batch_norm, "convnet/train.yaml" is convnet; others are named by their path.
std::string name_of_definition(const fs::path& file, const fs::path& folder) {
  const std::string stem = platform::text_of(file.stem()), train = "train";
  const std::string parent = file.parent_path().lexically_relative(folder).generic_string();
  if (parent != "." && stem.starts_with(train)) return parent + stem.substr(train.size());
  return file.lexically_relative(folder).replace_extension().generic_string();
}

Shape batch_shape(const TrainDefinition& cut) {
  if (!cut.model.input_shape) throw Error(cut.file + ": its cut has no input.shape; set it in the model's `conformance` block");
  Shape shape{cut.fit.batch_size};
  for (const std::int64_t size : *cut.model.input_shape) shape.push_back(size);
  return shape;
}

Tensor noise(const Shape& shape, Random& random) {
  Tensor tensor = Tensor::zeros(DType::f32, shape);
  for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.data<float>()[i] = static_cast<float>(random.uniform(0, 1));
  return tensor;
}
Tensor numbers_below(std::int64_t end, const Shape& shape, Random& random) {
  Tensor tensor = Tensor::zeros(DType::i64, shape);
  for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.data<std::int64_t>()[i] = random.integer(0, end);
  return tensor;
}

/// Rows of the embedding of the tokens; 0: there is none.
std::int64_t vocabulary(const ModelDefinition& model) {
  for (const LayerDefinition& layer : model.layers) {
    if (const auto* const embedding = std::get_if<layers::Embedding>(&layer.kind)) return embedding->rows;
  }
  return 0;
}

}  // namespace

Array array_of(const Tensor& tensor) {
  const Tensor host = tensor.to_host().contiguous();
  Array array(static_cast<tenon_dtype>(host.dtype()), {host.shape().begin(), host.shape().end()});
  if (array.size_bytes() > 0) std::memcpy(array.bytes(), host.raw(), array.size_bytes());  // no elements may have no address
  return array;
}

std::vector<TrainingModel> training_models(const fs::path& folder) {
  const std::string remedy = "name the folder of model definitions with --models";
  if (!fs::is_directory(folder))
    throw Error(fmt::format("conformance: profile training: the folder '{}' does not exist; {}", platform::text_of(folder), remedy));
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<TrainingModel> models;
  std::vector<TrainDefinition> definitions;
  const auto canonical = [](const std::string& file) {
    std::error_code ignored;
    return platform::canonical_path(file, ignored);
  };
  std::set<std::string> named;  // by a train.yaml
  for (const fs::path& file : files) {
    const TrainDefinition& definition = definitions.emplace_back(load_definition(platform::text_of(file)));
    if (definition.data) named.insert(canonical(definition.model.file));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!definitions[i].data && named.contains(canonical(platform::text_of(files[i])))) continue;
    models.push_back({name_of_definition(files[i], folder), files[i], definitions[i].model.conformance.has_value()});
  }
  if (models.empty()) throw Error(fmt::format("conformance: profile training: no model in '{}'; {}", platform::text_of(folder), remedy));
  std::sort(models.begin(), models.end(), [](const TrainingModel& a, const TrainingModel& b) { return a.name < b.name; });
  return models;
}

TrainingBatch batch_for(const TrainDefinition& cut, std::uint64_t seed) {
  Random random(seed);
  const Shape shape = batch_shape(cut);
  const DType dtype = train::input_dtype(cut.model);
  Graph graph;
  const Shape output = train::build(graph, cut.model, graph.input("x", dtype, shape), {}).outputs[0].output.shape();
  TrainingBatch batch;
  batch.x = dtype == DType::i64 ? numbers_below(vocabulary(cut.model), shape, random) : noise(shape, random);
  switch (train::rule_of(cut.loss.loss).targets) {
    case train::Targets::labels:
      batch.y = numbers_below(output[output.rank() - 1], Shape(output.dims().first(output.rank() - 1)), random);
      break;
    case train::Targets::one_hot: {
      batch.y = Tensor::zeros(DType::f32, output);
      const std::int64_t classes = output[output.rank() - 1];
      for (std::int64_t row = 0; row < batch.y.count(); row += classes) batch.y.data<float>()[row + random.integer(0, classes)] = 1;
      break;
    }
    case train::Targets::sequences:
      batch.y = numbers_below(output[output.rank() - 1], {output[0], 1}, random);
      break;
    case train::Targets::binary:
    case train::Targets::values:
    case train::Targets::any:
      batch.y = noise(output, random);
  }
  return batch;
}

Context context_on(const Device& device, std::uint64_t seed, bool deterministic) {
  const Source& source = device.source();
  const std::string name = device.info().name;
  Config config;
  config.backends.allow = {name, source.name};
  config.device = name + ":0";
  config.seed = seed;
  config.deterministic = deterministic;
  config.logging.level = LogLevel::off;
  config.backends.probe = BackendProbe::never;  // each case has a process of its own
  if (source.query == nullptr) return Context(config, {source.file});
  const exec::BackendScope scope(source.name, source.query);
  return Context(config);
}

TrainingRun::TrainingRun(const Context& context, const TrainDefinition& cut) : model(cut.model) {
  model.compile(context, {.optimizer = cut.optimizer, .loss = cut.loss});
  model.build(Shape(*cut.model.input_shape));
}

void TrainingRun::nudge(std::uint64_t seed) {
  Random random(seed);
  ParameterStore& store = model.parameters();
  for (const auto& [name, parameter] : store.all()) {
    if (is_training_state(name)) continue;
    Tensor moved = parameter.to_host().contiguous();
    const double units = 16 * epsilon(static_cast<tenon_dtype>(moved.dtype()));
    const auto move = [&](auto* values) {
      using Number = std::remove_pointer_t<decltype(values)>;
      for (std::int64_t i = 0; i < moved.count(); ++i) values[i] *= static_cast<Number>(1 + units * random.uniform(-1, 1));
    };
    if (moved.dtype() == DType::f32) move(moved.data<float>());
    if (moved.dtype() == DType::f64) move(moved.data<double>());
    store.set(name, moved);
  }
}

Finding TrainingRun::prediction(const std::string& when, const Tensor& x) {
  return {"prediction " + when, array_of(model.predict(x, x.shape()[0]))};
}

std::vector<Finding> TrainingRun::gradients(const TrainingBatch& batch) {
  model.backward(batch.x, batch.y);
  std::vector<Finding> found;
  const std::string prefix = "gradient/";
  for (const auto& [name, sum] : model.parameters().all()) {
    if (!name.starts_with(prefix)) continue;
    const std::string weight = name.substr(prefix.size());
    found.push_back({"gradient of " + weight, array_of(model.gradient(weight))});
  }
  return found;
}

std::vector<Finding> TrainingRun::parameters(const std::string& when) {
  std::vector<Finding> found;
  for (const auto& [name, parameter] : model.parameters().all()) {
    if (!is_training_state(name)) found.push_back({name + " " + when, array_of(parameter)});
  }
  return found;
}

}  // namespace tenon::conformance
