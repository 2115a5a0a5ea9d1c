// SPDX-License-Identifier: Apache-2.0
// config/layers_yaml.h - readers of the layers of model.yaml: a row for each layer type.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/definition.h>

#include "config/yaml_names.h"

namespace tenon::config {

struct LayerContext {
  Preset preset = Preset::none;
  std::string label;  ///< "layers[2] dense": the layer in messages
};

struct LayerReader {
  LayerDefinition::Kind kind;
  /// Reads the keys of the layer, except `name` and `device`.
  void (*read)(Section& section, const LayerContext& context, LayerDefinition& out_layer);
};

// The readers of each family, in the order in which messages list them.
std::span<const LayerReader> basic_layer_readers();
std::span<const LayerReader> image_layer_readers();
std::span<const LayerReader> norm_layer_readers();
std::span<const LayerReader> sequence_layer_readers();
const std::vector<LayerReader>& layer_readers();

/// Reads a list of layers and expands `repeat`. `label` is that of the enclosing layer, "" for the model's own list.
std::vector<LayerDefinition> read_layers(const Value& list, Preset preset, const std::string& label = "");

// Shared by the families.
Initializer read_initializer(const Value& value, Preset preset);
/// Reads a name, or {name: leaky_relu, alpha: 0.2}.
void read_activation(const Value& value, LayerDefinition& out_layer);
void read_alpha(Section& section, LayerDefinition& out_layer);
/// Reads `bias` and the initializers and regularizer of kernel and bias, with the preset's defaults.
void read_weights(Section& section, Preset preset, LayerDefinition& out_layer);

inline constexpr Range<std::int64_t> from_one{1, 1 << 30};

}  // namespace tenon::config
