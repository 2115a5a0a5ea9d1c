// SPDX-License-Identifier: Apache-2.0
// layers/definition.h - questions about the layers of a definition.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenon/definition.h>

namespace tenon::layers {

class Sources;  // layers/sources.h

/// Calls visit for each layer, including inner layers. `List` is a vector of LayerDefinition, which may be const.
template <class List, class Visit>
void for_each_layer(List& list, const Visit& visit) {
  for (auto& layer : list) {
    visit(layer);
    if (auto* const residual = std::get_if<Residual>(&layer.kind)) {
      for_each_layer(residual->body, visit);
      for_each_layer(residual->shortcut, visit);
    } else if (auto* const branches = std::get_if<Branches>(&layer.kind)) {
      for (auto& part : branches->parts) for_each_layer(part, visit);
    }
  }
}

/// True if the first layer other than flatten is an embedding.
bool starts_with_embedding(const ModelDefinition& definition);
/// True if the first layer takes x as it is: other layers get it in the dtype of the parameters.
bool takes_any_dtype(const ModelDefinition& definition);
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
/// True if the model is one layer `onnx`, which may have several inputs and outputs.
bool is_one_file(const ModelDefinition& definition);
/// The dtype of a sample if no data is given: i64 instead of a floating dtype for an embedding.
DType input_dtype(const ModelDefinition& definition);
/// Multiplies the features and channels of all layers but the last by `factor`.
void scale_width(ModelDefinition& definition, double factor);

}  // namespace tenon::layers
