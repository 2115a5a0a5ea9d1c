// SPDX-License-Identifier: Apache-2.0
// gpu_testing.h - helpers of the GPU tests. They find the cuda backend like a user's program: by TENON_BACKEND_PATH or next to the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "testing.h"

namespace tenon::test {

inline Config gpu_config(const std::string& device = "cuda:0") {
  Config config;
  config.device = device;
  config.threads = 2;
  config.logging.level = LogLevel::off;
  return config;
}

/// The losses of a model's first `steps` steps on digits.
inline std::vector<double> losses_of(Config config, const std::vector<LayerDefinition>& layers, const OptimizerDefinition& optimizer,
                                     std::int64_t steps, std::int64_t batch_size, const ParallelOptions& parallel = {}) {
  config.seed = 3;
  const Context context(config);
  CompileOptions options;
  options.optimizer = optimizer;
  options.parallel = parallel;
  options.loss.loss = Loss::sparse_categorical_crossentropy;
  Model model(layers);
  model.compile(context, options);
  Batches batches(generate_digits({.count = steps * batch_size}), {.batch_size = batch_size, .seed = 5, .workers = 0});
  batches.start(0);
  std::vector<double> losses;
  while (const Batch* next = batches.next()) losses.push_back(model.train_batch(next->x(), next->y()).loss());
  REQUIRE(losses.size() == static_cast<std::size_t>(steps));
  return losses;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace tenon::test
