// config/model_yaml.h - parses model.yaml and train.yaml into typed structs. No layer is built and no data file is opened here.
//
// model.yaml lists the layers of tenon/definition.h:
//
//   layers:                                              the families are in config/layers_yaml.h
//     - flatten                                          keeps the batch axis
//     - dense: {units: 128, activation: relu, bias: true, kernel_initializer: glorot_uniform, bias_initializer: zeros}
//     - dropout: {p: 0.2}                                0 <= p < 1
//     - activation: {name: softmax}                      or - softmax, - relu, ...; leaky_relu and elu take alpha
//     - embedding: {rows: 10000, dim: 64, initializer: uniform}   x holds integers from 0 to rows - 1
//
// Every map also takes `name` (except in `activation`, where it is the activation) and `device`; a layer without keys may be a plain name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/callbacks.h>
#include <tenon/config.h>
#include <tenon/definition.h>

#include "config/data_yaml.h"
#include "config/yaml_tree.h"

namespace tenon::config {

class Section;

struct CheckpointDefinition {
  std::string directory;
  std::int64_t every_epochs = 1;
  std::int64_t keep = 1;  ///< number of newest checkpoints to keep; 0: all
};

struct ResumeDefinition {
  enum class Kind { never, automatic, path };  ///< automatic: the newest checkpoint in checkpoint.directory, if any
  Kind kind = Kind::never;
  std::string path;
};

enum class LogStyle { keras, gorgonia };
const char* name_of(LogStyle style);

/// train.yaml. Its top level also takes every key of Config (`seed`, `deterministic`, `device`, `check_numerics`, ...), stored in `config`.
struct TrainDefinition {
  ModelDefinition model;
  DataDefinition data;
  LossDefinition loss;
  OptimizerDefinition optimizer;
  std::vector<MetricDefinition> metrics;
  std::vector<CallbackDefinition> callbacks;
  std::int64_t batch_size = 32;
  std::int64_t epochs = 1;
  std::int64_t accumulate = 1;                ///< batches per step
  std::vector<std::string> parallel_devices;  ///< devices that share each batch; empty: one device
  bool shuffle = true;
  int verbose = 1;
  LogStyle log_style = LogStyle::keras;
  std::optional<std::int64_t> steps_per_epoch;
  std::optional<CheckpointDefinition> checkpoint;
  ResumeDefinition resume;
  std::string output;  ///< folder for logs and curves; "": nothing is written
  Config config;       ///< a layer for resolve_config: only keys set by the file or an override have an origin
  std::string file;
};

/// Reads model.yaml. `overrides` are applied to the tree first, with keys as in the file ("layers.1.dense.units"); their errors read
/// "--set dtype=f16: key 'dtype': expected ...".
///
/// Errors  "model.yaml:9:5: layers[2] dense: unknown key 'unit'; did you mean 'units'?".
ModelDefinition load_model(const std::string& path, const std::vector<ConfigOverride>& overrides = {});
ModelDefinition model_from_text(const std::string& text, const std::string& name = "<text>",
                                const std::vector<ConfigOverride>& overrides = {});

/// Reads train.yaml and the model that it names relative to its folder; overrides of "model.<key>" apply to the model's file.
TrainDefinition load_train(const std::string& path, const std::vector<ConfigOverride>& overrides = {});
/// Relative paths in the text start from `folder`.
TrainDefinition train_from_text(const std::string& text, const std::string& name = "<text>", const std::string& folder = "",
                                const std::vector<ConfigOverride>& overrides = {});

/// Reads a train.yaml or model.yaml and reduces the model as its `conformance` block says; keys of `set` that begin with "train." apply to
/// train.yaml. Errors also: a model without that block.
TrainDefinition load_cut(const std::string& path);

/// Shared by the readers of model.yaml and train.yaml. `context` precedes the keys in errors; "" for a model.yaml.
ModelDefinition read_model(const Node& tree, const std::string& context = "");
Preset read_preset(Section& section);
/// Applies command-line overrides to a tree.
void apply_overrides(Node& tree, const std::vector<ConfigOverride>& overrides);

}  // namespace tenon::config
