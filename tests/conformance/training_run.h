// training_run.h - models made small, batches made for them, and what a device makes of both. It runs them as an application would: by the
// runtime, which finds the backend by its file or its query function.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <tenon/model.h>

#include "array.h"
#include "config/model_yaml.h"
#include "device.h"

namespace tenon::conformance {

/// A definition that trains: a train.yaml, or a model.yaml that none names.
struct TrainingModel {
  std::string name;  ///< "convnet", "convnet_batch_norm", "bench/resnet_50"
  std::filesystem::path file;
  bool has_cut = false;  ///< its model says how it is made small
};
/// All of a folder, by name. Errors: tenon::Error for a folder that is not there or has none, a definition that cannot be read.
std::vector<TrainingModel> training_models(const std::filesystem::path& folder);

/// One batch.
struct TrainingBatch {
  Tensor x, y;
};
/// Noise of the shapes that the cut's first layer and loss want: pixels in [0, 1), tokens, labels.
TrainingBatch batch_for(const config::TrainDefinition& cut, std::uint64_t seed);

/// Something that a run came to.
struct Finding {
  std::string what;  ///< "gradient of conv2d/kernel"
  Array value;
};

/// The elements, brought to the host.
Array array_of(const Tensor& tensor);

/// A context that knows the device's backend and no other.
Context context_on(const Device& device, std::uint64_t seed, bool deterministic);

/// A cut under way on a device.
class TrainingRun {
 public:
  TrainingRun(const Context& context, const config::TrainDefinition& cut);

  /// Every weight moved by up to 16 units in its last place, at random.
  void nudge(std::uint64_t seed);
  Finding prediction(const std::string& when, const Tensor& x);
  /// Gradients of the batch; they wait, so that no step can follow.
  std::vector<Finding> gradients(const TrainingBatch& batch);
  /// One step, forward to update; what the loss was before it.
  double step(const TrainingBatch& batch) { return model.train_batch(batch.x, batch.y)[0].second; }
  /// Weights and running statistics.
  std::vector<Finding> parameters(const std::string& when);

  Model model;
};

}  // namespace tenon::conformance
