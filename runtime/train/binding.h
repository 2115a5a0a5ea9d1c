// SPDX-License-Identifier: Apache-2.0
// train/binding.h - which inputs and targets of data are those of a model, by name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tenon/data.h>

#include "train/program/model_setup.h"
#include "train/program/programs.h"

namespace tenon::train {

/// For each input of the model, the index of its name in `given`. An only input takes an only one of any name.
/// Errors  begin with `what`: an input that is missing, one that the model does not have.
std::vector<std::size_t> indices_of_inputs(const ModelSetup& setup, const std::vector<std::string>& given, const std::string& what);
/// For each loss of the model, the index of its target in `given`; others are not used.
/// Errors  begin with `what`: a target that is missing; a model without losses.
std::vector<std::size_t> indices_of_targets(const ModelSetup& setup, const std::vector<std::string>& given, const std::string& what);

/// Named tensors in the order of the model.
std::vector<Tensor> inputs_in_order(const ModelSetup& setup, const NamedTensors& inputs, const std::string& what);
std::vector<Tensor> targets_in_order(const ModelSetup& setup, const NamedTensors& targets, const std::string& what);
/// The shapes of a data set's samples, for each input of the model.
std::vector<Shape> samples_of(const ModelSetup& setup, const Dataset& data);

/// Batches of a data set in the order of a model.
class BoundBatches {
 public:
  /// Errors  those of the functions above.
  BoundBatches(const ModelSetup& setup, const Dataset& data);
  /// The tensors of the batch, valid until the next call. Only the first call allocates.
  BatchTensors operator()(const Batch& batch);
  const Dataset& data() const { return data_; }

 private:
  const ModelSetup& setup_;
  const Dataset& data_;
  std::vector<std::size_t> input_indices_, target_indices_;
  std::vector<Tensor> inputs_, targets_;
};

}  // namespace tenon::train
