// train/parallel.h - one batch on several devices: replicas of the forward pass and its gradients over parts of the batch.
#pragma once

#include <string>
#include <vector>

#include "train/builder.h"
#include "train/loss_scale.h"
#include "train/objective.h"

namespace tenon::train {

/// What a step needs, whatever number of devices made it.
struct Gradients {
  Forward forward;  ///< of the first part; its parameters are those of all
  Objective objective;
  std::vector<Value> of;  ///< per parameter
};

/// Splits x and y evenly along their first axis, builds the model on each device for its part, and combines loss, metrics and gradients as
/// means weighted by what counts in each part, on the first device. Parameters stay where they are: what other devices read of them is
/// copied, once a step, by the executor. A batch smaller than the number of devices uses fewer of them.
///
/// Batch normalisation takes the statistics of each device's own part; running statistics become the mean of what the parts make of them.
///
/// Errors  a layer with a device of its own.
Gradients build_parallel(Graph& graph, const ModelDefinition& definition, const LossDefinition& loss,
                         const std::vector<MetricDefinition>& metrics, const std::vector<std::string>& devices, Value x, Value key, Value y,
                         const LossScale& scale);

}  // namespace tenon::train
