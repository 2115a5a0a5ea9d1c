// config/layers_yaml.h - the layers of model.yaml: a row for each word, and what its keys are.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/definition.h>

#include "config/yaml_reader.h"

namespace tenon::config {

/// What a layer's keys are read under.
struct LayerContext {
  Preset preset = Preset::none;
  std::string label;  ///< "layers[2] dense": what messages call the layer
};

struct LayerReader {
  const char* word;
  LayerDefinition::Kind kind;
  /// The keys of the layer, except `name` and `device`.
  void (*read)(Section& section, const LayerContext& context, LayerDefinition& out_layer);
};

/// By family, in the order in which messages list them.
std::span<const LayerReader> basic_layer_readers();
std::span<const LayerReader> image_layer_readers();
std::span<const LayerReader> norm_layer_readers();
std::span<const LayerReader> sequence_layer_readers();
/// All of them.
const std::vector<LayerReader>& layer_readers();

/// A list of layers; `repeat` is written out. `label` of the layer around them, "" for those of the model.
std::vector<LayerDefinition> read_layers(const Value& list, Preset preset, const std::string& label = "");

// What families share.
const std::vector<Choice<Preset>>& presets();
const std::vector<Choice<Activation>>& activations();
Initializer read_initializer(const Value& value, Preset preset);
/// A word, or {name: leaky_relu, alpha: 0.2}.
void read_activation(const Value& value, LayerDefinition& out_layer);
void read_alpha(Section& section, LayerDefinition& out_layer);
/// `bias` and the keys that start kernel and bias, with the preset's defaults.
void read_weights(Section& section, Preset preset, LayerDefinition& out_layer);

inline constexpr Range<std::int64_t> from_one{1, 1 << 30};

}  // namespace tenon::config
