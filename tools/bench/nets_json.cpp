// SPDX-License-Identifier: Apache-2.0
// Writes a model as JSON, for peers that build the same net. The keys are those that peers/nets_torch.py reads.
#include "bench/nets_json.h"

#include <type_traits>
#include <variant>

#include <nlohmann/json.hpp>

namespace tenon::bench {
namespace {

using Json = nlohmann::ordered_json;

Json layers_of(const std::vector<LayerDefinition>& list);

void add_activation(const layers::Activation& activation, Json& out_json) {
  if (activation.function != Activation::linear) out_json["activation"] = name_of(activation.function);
}

/// Adds the fields that the layer has.
template <class L>
void add_keys(const L& layer, Json& out_json) {
  if constexpr (std::is_same_v<L, layers::Activation>) add_activation(layer, out_json);
  if constexpr (requires { layer.activation; }) add_activation(layer.activation, out_json);
  if constexpr (requires { layer.weights; }) out_json["bias"] = layer.weights.bias;
  if constexpr (requires { layer.units; }) out_json["units"] = layer.units;
  if constexpr (requires { layer.channels; }) out_json["units"] = layer.channels;
  if constexpr (requires { layer.filters; }) out_json["units"] = layer.filters;
  if constexpr (requires { layer.kernel_size; }) out_json["size"] = layer.kernel_size.values;
  if constexpr (requires { layer.pool_size; }) out_json["size"] = layer.pool_size.values;
  if constexpr (requires { layer.strides; }) out_json["strides"] = layer.strides.values;
  if constexpr (requires { layer.padding; }) out_json["padding"] = layer.padding.sides, out_json["same"] = layer.padding.fits_stride;
  if constexpr (requires { layer.dilation; }) out_json["dilation"] = layer.dilation.values;
  if constexpr (requires { layer.groups; }) out_json["groups"] = layer.groups;
  if constexpr (requires { layer.ceil_mode; }) out_json["ceil_mode"] = layer.ceil_mode;
  if constexpr (requires { layer.count_include_pad; }) out_json["count_include_pad"] = layer.count_include_pad;
  if constexpr (requires { layer.p; }) out_json["p"] = layer.p;
  if constexpr (requires { layer.rows; }) out_json["rows"] = layer.rows, out_json["dim"] = layer.dim;
  if constexpr (requires { layer.shape; }) out_json["shape"] = layer.shape;
  if constexpr (requires { layer.momentum; }) out_json["momentum"] = *layer.momentum, out_json["epsilon"] = *layer.epsilon;
  if constexpr (requires { layer.num_layers; }) {
    out_json["num_layers"] = layer.num_layers, out_json["bidirectional"] = layer.bidirectional;
    out_json["return_sequences"] = layer.return_sequences;
  }
  if constexpr (std::is_same_v<L, layers::LRN>) {
    out_json["neighbours"] = layer.size, out_json["alpha"] = layer.alpha, out_json["beta"] = layer.beta, out_json["k"] = layer.bias;
  }
  if constexpr (requires { layer.shortcut; }) out_json["parts"] = Json::array({layers_of(layer.body), layers_of(layer.shortcut)});
  if constexpr (requires { layer.parts; }) {
    for (const std::vector<LayerDefinition>& part : layer.parts) out_json["parts"].push_back(layers_of(part));
  }
}

Json layers_of(const std::vector<LayerDefinition>& list) {
  Json all = Json::array();
  for (const LayerDefinition& layer : list) {
    Json json{{"kind", layer.kind_name()}};
    std::visit([&](const auto& kind) { add_keys(kind, json); }, layer.kind);
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace

Json to_json(const ModelDefinition& model, bool integers) {
  return {{"name", model.name}, {"input", *model.input_shape}, {"integers", integers}, {"layers", layers_of(model.layers)}};
}

}  // namespace tenon::bench
