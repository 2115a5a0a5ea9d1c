// SPDX-License-Identifier: Apache-2.0
// parallel_testing.h - models that are trained on several devices of a process.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testing.h"

namespace tenon::test {

inline Config two_devices(const std::string& backend) {
  Config config = test_config(backend + ":0");
  config.virtual_devices = {{backend + ":0", 2, 0}};
  config.seed = 3;
  return config;
}

inline std::vector<LayerDefinition> mlp() {
  return {layers::Flatten{}, layers::Dense{300, Activation::relu, {.bias = false}}, layers::Dense{100, Activation::relu, {.bias = false}},
          layers::Dense{10, Activation::softmax, {.bias = false}}};
}

inline CompileOptions classification(std::vector<std::string> devices = {}) {
  return {.optimizer = {.kind = OptimizerDefinition::Kind::rmsprop},
          .loss = {.loss = Loss::sparse_categorical_crossentropy},
          .metrics = {Metric::accuracy},
          .parallel = {.devices = std::move(devices)}};
}

inline std::vector<Logs> logs_of(Model& model, const std::shared_ptr<const Dataset>& data, std::int64_t batch) {
  Batches batches(data, {.batch_size = batch, .seed = 5, .workers = 0});
  batches.start(0);
  std::vector<Logs> all;
  while (const Batch* next = batches.next()) all.push_back(model.train_batch(next->x(), next->y()).logs);
  return all;
}

inline Config devices_of(const std::string& backend, int count, int threads = 2) {
  Config config = two_devices(backend);
  config.virtual_devices[0].count = count;
  config.threads = threads;
  return config;
}

inline std::vector<std::string> names(const std::string& backend, int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(backend + ":" + std::to_string(i));
  return all;
}

/// A net with most of what a step can consist of: convolution, batch normalisation, several inner sizes.
inline ModelDefinition small_convnet() {
  ModelDefinition definition;
  definition.dtype = DType::f64;
  definition.layers = {layers::Reshape{{1, 28, 28}},
                       layers::Conv2D{.filters = 4, .kernel_size = {3, 3}, .strides = {2, 2}},
                       layers::BatchNorm{},
                       layers::Activation{Activation::relu},
                       layers::Flatten{},
                       layers::Dense{10, Activation::softmax}};
  return definition;
}

/// Logs of each step and the parameters after them.
inline std::pair<std::vector<Logs>, std::vector<Tensor>> trained(const Context& context, const ModelDefinition& definition,
                                                                 const CompileOptions& options, std::int64_t batch,
                                                                 const std::shared_ptr<const Dataset>& data) {
  Model model(definition);
  model.compile(context, options);
  std::pair<std::vector<Logs>, std::vector<Tensor>> result;
  result.first = logs_of(model, data, batch);
  for (const auto& [name, tensor] : model.parameters().all()) {
    if (!is_training_state(name)) result.second.push_back(tensor.to_host());
  }
  return result;
}

inline void check_equal(Model& a, Model& b) {
  for (const auto& entry : b.parameters().all()) {
    const auto& name = entry.first;
    CAPTURE(name);
    if (!is_training_state(name)) CHECK(equal(a.parameters().get(name).to_host(), entry.second.to_host()));
  }
}

}  // namespace tenon::test
