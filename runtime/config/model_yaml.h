// SPDX-License-Identifier: Apache-2.0
// config/model_yaml.h - parses model.yaml and train.yaml into the structs of tenon/train_definition.h. No layer is built and no data file
// is opened here.
//
// model.yaml lists the layers of tenon/definition.h:
//
//   layers:                                              the kinds are in tenon/layers.h
//     - flatten                                          keeps the batch axis
//     - dense: {units: 128, activation: relu, bias: true, kernel_initializer: glorot_uniform, bias_initializer: zeros}
//     - dropout: {p: 0.2}                                0 <= p < 1
//     - activation: {name: softmax}                      or - softmax, - relu, ...; leaky_relu and elu take alpha
//     - embedding: {rows: 10000, dim: 64, initializer: uniform}   x holds integers from 0 to rows - 1
//
// Every map also takes `name` (except in `activation`, where it is the activation) and `device`; a layer without keys may be a plain name.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include <tenon/config.h>
#include <tenon/train_definition.h>

#include "config/yaml_names.h"

namespace tenon::config {

/// YAML files, each of which is parsed once.
class Files {
 public:
  /// Errors  those of yaml::load; for a folder with a file of the usual name, and for an ONNX model, what to give instead.
  const Node& load(const std::string& path, const char* usual_name = "train.yaml");

 private:
  std::map<std::string, Node> trees_;
};

/// Reads model.yaml. `overrides` are applied to the tree first, with keys as in the file ("layers.1.dense.units"); their errors read
/// "--set dtype=f16: key 'dtype': expected ...".
///
/// Errors  "model.yaml:9:5: layers[2] dense: unknown key 'unit'; did you mean 'units'?".
ModelDefinition model_from_text(const std::string& text, const std::string& name = "<text>",
                                const std::vector<ConfigOverride>& overrides = {});
ModelDefinition load_model_file(Files& files, const std::string& path, const std::vector<ConfigOverride>& overrides);

/// Reads train.yaml and the model that it names relative to its folder; overrides of "model.<key>" apply to the model's file.
TrainDefinition load_train_file(Files& files, const std::string& path, const std::vector<ConfigOverride>& overrides);
/// Relative paths in the text start from `folder`.
TrainDefinition train_from_text(const std::string& text, const std::string& name = "<text>", const std::string& folder = "",
                                const std::vector<ConfigOverride>& overrides = {});

/// Reads a file of any kind: a model.yaml has `layers`, a train.yaml has `model`, and a configuration neither.
std::variant<ModelDefinition, TrainDefinition, Config> load_any(const std::string& path);

/// Reads a train.yaml or model.yaml and reduces the model as its `conformance` block says; keys of `set` that begin with "train." apply to
/// train.yaml. Errors also: a model without that block.
TrainDefinition load_cut(const std::string& path);

/// Shared by the readers of model.yaml and train.yaml. `context` precedes the keys in errors; "" for a model.yaml.
ModelDefinition read_model(const Node& tree, const std::string& context = "");
Preset read_preset(Section& section);
/// Applies command-line overrides to a tree.
void apply_overrides(Node& tree, const std::vector<ConfigOverride>& overrides);

}  // namespace tenon::config
