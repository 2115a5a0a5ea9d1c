// SPDX-License-Identifier: Apache-2.0
// train/summary.h - the summary of a model as a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/context.h>
#include <tenon/model.h>
#include <tenon/train_definition.h>

#include "train/program/model_setup.h"
#include "train/program/programs.h"

namespace tenon::train {

/// A table of Layer (type), Output Shape, Param #, FLOPs and Device, then totals with bytes. `optimizer_parameters` is the number of
/// elements of the optimizer state.
std::string summary_table(const std::string& name, const std::vector<LayerSummary>& layers, DType dtype, std::int64_t optimizer_parameters,
                          const std::string& device);

/// The same for what a model was compiled with, and its precision.
std::string summary_of(const ModelSetup& setup, const std::vector<LayerSummary>& layers, const std::vector<SampleType>& outputs);
/// The memory of a training step and of a prediction for this batch, a table for each device; or the reason why it is not known.
std::string memory_table(const Programs& programs, const BatchType& batch, bool trains);

/// Both for a definition, without a model: nothing is allocated. A layer's device that is missing is a warning that names the layer.
/// Errors  a model without `input: {shape: ...}`.
std::string summary_of(const TrainDefinition& definition, const Context& context, std::int64_t batch_size);

}  // namespace tenon::train
