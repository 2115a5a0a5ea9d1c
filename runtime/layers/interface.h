// SPDX-License-Identifier: Apache-2.0
// layers/interface.h - the inputs and outputs of a model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tenon/definition.h>

namespace tenon::layers {

class Sources;  // layers/sources.h

/// An input of a model.
struct ModelInput {
  std::string name;
  DType dtype = DType::f32;
  std::optional<Shape> sample = {};  ///< nothing: that of the first batch
};
/// An output of a model.
struct ModelOutput {
  std::string name;
  tenon::Activation final_activation = tenon::Activation::linear;  ///< softmax or sigmoid if its last layer or node is one, else linear
};
/// What a model takes and gives: x and y, or what the file of a model that is one layer `onnx` names.
struct Interface {
  std::vector<ModelInput> inputs;
  std::vector<ModelOutput> outputs;
};
/// Also sets what a definition leaves open of an only input and the file of its first layer, onnx, states: the shape, and a dtype of
/// integers. Errors  those of the layer and its file; shapes for inputs that the model does not have.
Interface complete_interface(ModelDefinition& definition, Sources& sources);

}  // namespace tenon::layers
