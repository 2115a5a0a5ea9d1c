// SPDX-License-Identifier: Apache-2.0
// training_run.h - reduced models, batches for them, and their training on a device. The runtime runs them as in an application: it finds
// the backend by its file or its query function.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <tenon/model.h>
#include <tenon/train_definition.h>

#include "array.h"
#include "device.h"

namespace tenon::conformance {

/// A definition for training: a train.yaml, or a model.yaml that no train.yaml names.
struct TrainingModel {
  std::string name;  ///< "convnet", "convnet_batch_norm", "bench/resnet_50"
  std::filesystem::path file;
  bool has_cut = false;  ///< its model says how it is reduced
};
/// All models of a folder, sorted by name. Errors: tenon::Error for a folder that does not exist or has none, an unreadable definition.
std::vector<TrainingModel> training_models(const std::filesystem::path& folder);

/// One batch.
struct TrainingBatch {
  Tensor x, y;
};
/// Noise in the shapes that the cut's first layer and loss expect: pixels in [0, 1), tokens, labels.
TrainingBatch batch_for(const TrainDefinition& cut, std::uint64_t seed);

/// A result of a run.
struct Finding {
  std::string what;  ///< "gradient of conv2d/kernel"
  Array value;
};

/// A copy of the elements on the host.
Array array_of(const Tensor& tensor);

/// A context with only the device's backend.
Context context_on(const Device& device, std::uint64_t seed, bool deterministic);

/// A cut in training on a device.
class TrainingRun {
 public:
  TrainingRun(const Context& context, const TrainDefinition& cut);

  /// Moves every weight at random by up to 16 units in its last place.
  void nudge(std::uint64_t seed);
  Finding prediction(const std::string& when, const Tensor& x);
  /// Gradients of the batch. They stay accumulated, so no step can follow.
  std::vector<Finding> gradients(const TrainingBatch& batch);
  /// One training step. Returns the loss before the update.
  double step(const TrainingBatch& batch) { return model.train_batch(batch.x, batch.y).loss(); }
  /// Weights and running statistics.
  std::vector<Finding> parameters(const std::string& when);

  Model model;
};

}  // namespace tenon::conformance
