// SPDX-License-Identifier: Apache-2.0
// layers/definition.h - questions about the layers of a definition.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenon/definition.h>

namespace tenon::layers {

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
/// True if the model is one layer `onnx`, which may have several inputs and outputs.
bool is_one_file(const ModelDefinition& definition);
/// The dtype of a sample if no data is given: i64 instead of a floating dtype for an embedding.
DType input_dtype(const ModelDefinition& definition);
/// Multiplies the features and channels of all layers but the last by `factor`.
void scale_width(ModelDefinition& definition, double factor);

}  // namespace tenon::layers
