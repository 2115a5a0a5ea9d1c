// SPDX-License-Identifier: Apache-2.0
// layers/keys.h - reads layers from model.yaml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/definition.h>

#include "yaml/reader.h"

namespace tenon::layers {

/// The keys of one layer, and what several kinds of layers have among them.
class LayerKeys : public yaml::Section {
 public:
  /// `label` is the layer in messages: "layers[2] dense".
  LayerKeys(const yaml::Node& map, Preset preset, const std::string& label) : Section(map, label), preset_(preset), label_(label) {}

  /// The preset of the model, whose defaults layers/defaults.h sets.
  Preset preset() const { return preset_; }

  /// An integer of at least 1.
  std::int64_t count(const std::string& key) { return require<std::int64_t>(key, "an integer of at least 1", {1, 1 << 30}); }
  std::int64_t count(const std::string& key, std::int64_t default_value) { return get<std::int64_t>(key, default_value, {1, 1 << 30}); }
  /// Reads an initializer if the key is present, and returns its value for messages.
  template <class T>  // Initializer, or one that may be absent
  std::optional<yaml::Value> initializer(const std::string& key, T& out_initializer) {
    std::optional<yaml::Value> value = find(key, "an initializer: a name, or a map with the key name");
    if (value) attempt([&] { out_initializer = read_initializer(*value); });
    return value;
  }
  /// `activation`: a name, or {name: leaky_relu, alpha: 0.2}.
  Activation activation();
  /// `bias` and the initializers and regularizer of kernel and bias.
  Weights weights();
  /// A list of inner layers.
  std::vector<LayerDefinition> layers(const yaml::Value& list) const;

 private:
  static Initializer read_initializer(const yaml::Value& value);

  Preset preset_;
  std::string label_;
};

/// Reads a list of layers and expands `repeat`. `label` is that of the enclosing layer, "" for the model's own list.
std::vector<LayerDefinition> read_layers(const yaml::Value& list, Preset preset, const std::string& label = "");

/// Reads the layer `onnx` that is a whole model: the path of its file, or a map of its keys.
LayerDefinition read_onnx_model(const yaml::Value& value, Preset preset);

}  // namespace tenon::layers
