// SPDX-License-Identifier: Apache-2.0
// train_testing.h - helpers of the training tests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testing.h"

namespace tenon::test {

/// Parameters and data of models that learn.
inline std::vector<float> numbers(std::size_t count, std::size_t step = 7) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * step % 11) / 11 - 0.4F;
  return values;
}

/// A configuration whose runs have the same bits.
inline Config deterministic(const std::string& device = "openblas:0") {
  Config config = test_config(device);
  config.deterministic = true;
  config.seed = 3;
  return config;
}

struct Deterministic {
  const Context context{deterministic()};
};

inline CompileOptions classification(OptimizerDefinition optimizer = {}) {
  return {.optimizer = std::move(optimizer), .loss = {.loss = Loss::sparse_categorical_crossentropy}, .metrics = {Metric::accuracy}};
}

inline Model compiled(const Context& context, std::vector<LayerDefinition> layers, const CompileOptions& options = classification()) {
  Model model(std::move(layers));
  model.compile(context, options);
  return model;
}

inline std::shared_ptr<const ArrayDataset> digits(std::int64_t count = 200, Split split = Split::train) {
  return generate_digits({.count = count, .split = split});
}

/// The parameters of a model whose names and tensors `keep` accepts.
template <class Keep>
std::map<std::string, std::vector<float>> weights(Model& model, Keep keep) {
  std::map<std::string, std::vector<float>> all;
  for (const auto& [name, tensor] : model.parameters().all()) {
    if (keep(name, tensor)) all[name] = floats(tensor);
  }
  return all;
}
inline std::map<std::string, std::vector<float>> weights(Model& model) {
  return weights(model, [](const std::string&, const Tensor&) { return true; });
}

}  // namespace tenon::test
