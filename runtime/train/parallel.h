// SPDX-License-Identifier: Apache-2.0
// train/parallel.h - data parallelism: the forward pass and its gradients on several devices, each for a part of the batch.
#pragma once

#include <span>
#include <vector>

#include "train/builder.h"
#include "train/loss_scale.h"
#include "train/model_setup.h"
#include "train/objective.h"

namespace tenon::train {

/// Forward pass, objective and gradients of a step, on one or several devices.
struct Gradients {
  Forward forward;  ///< of the first part; all parts share its parameters
  Objective objective;
  std::vector<Value> of;  ///< per parameter
};

/// Splits inputs and targets evenly along their first axis, builds the model on each of its parallel devices for its part, and combines
/// loss, metrics and gradients on the first device as weighted means. Parameters stay where they are; the executor copies them to the other
/// devices once per step. A batch smaller than the number of devices uses fewer of them.
///
/// Batch normalisation uses the statistics of each device's part; running statistics become the mean over the parts.
///
/// Errors  a layer with a device of its own.
Gradients build_parallel(Graph& graph, const ModelSetup& setup, const NamedValues& inputs, Value key, std::span<const Value> targets,
                         Value sample_weights, const LossScale& scale);

}  // namespace tenon::train
