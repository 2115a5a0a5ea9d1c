// SPDX-License-Identifier: Apache-2.0
// Writes a model as JSON, for peers that build the same net: layers with the keys of LayerDefinition.
#include "bench/nets_json.h"

#include <nlohmann/json.hpp>

namespace tenon::bench {
namespace {

using Json = nlohmann::ordered_json;
using Kind = LayerDefinition::Kind;

Json layers_of(const std::vector<LayerDefinition>& layers);

Json layer_of(const LayerDefinition& layer) {
  Json json;
  json["kind"] = name_of(layer.kind);
  if (layer.units > 0) json["units"] = layer.units;
  if (layer.activation != Activation::linear) json["activation"] = name_of(layer.activation);
  json["bias"] = layer.bias;
  if (layer.kind == Kind::dropout) json["p"] = layer.dropout_p;
  if (layer.kind == Kind::embedding) json["rows"] = layer.rows, json["dim"] = layer.dim;
  if (layer.kind == Kind::reshape) json["shape"] = layer.shape;
  const WindowDefinition& window = layer.window;
  if (!window.size.empty()) {
    json["size"] = window.size;
    json["strides"] = window.strides;
    json["dilation"] = window.dilation;
    json["padding"] = window.padding;
    json["same"] = window.same;
    json["ceil_mode"] = window.ceil_mode;
    json["count_include_pad"] = window.count_include_pad;
    json["groups"] = window.groups;
  }
  if (layer.kind == Kind::batch_norm) json["epsilon"] = layer.norm.epsilon, json["momentum"] = layer.norm.momentum;
  if (layer.kind == Kind::lrn) {
    json["neighbours"] = layer.norm.size;
    json["alpha"] = layer.norm.alpha, json["beta"] = layer.norm.beta, json["k"] = layer.norm.bias;
  }
  if (layer.kind == Kind::lstm) {
    json["num_layers"] = layer.sequence.num_layers;
    json["bidirectional"] = layer.sequence.bidirectional;
    json["return_sequences"] = layer.sequence.return_sequences;
  }
  for (const std::vector<LayerDefinition>& part : layer.parts) json["parts"].push_back(layers_of(part));
  return json;
}

Json layers_of(const std::vector<LayerDefinition>& layers) {
  Json list = Json::array();
  for (const LayerDefinition& layer : layers) list.push_back(layer_of(layer));
  return list;
}

}  // namespace

Json to_json(const ModelDefinition& model, bool integers) {
  return {{"name", model.name}, {"input", *model.input_shape}, {"integers", integers}, {"layers", layers_of(model.layers)}};
}

}  // namespace tenon::bench
