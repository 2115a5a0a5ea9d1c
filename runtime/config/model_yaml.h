// config/model_yaml.h - model.yaml and train.yaml to typed structs. Parsing only: nothing here makes a layer or opens a file of data.
//
// model.yaml lists the layers of tenon/definition.h:
//
//   layers:                                              see config/layers_yaml.h for the families
//     - flatten                                          batch axis kept
//     - dense: {units: 128, activation: relu, bias: true, kernel_initializer: glorot_uniform, bias_initializer: zeros}
//     - dropout: {p: 0.2}                                0 <= p < 1
//     - activation: {name: softmax}                      or - softmax, - relu, ...; leaky_relu and elu take alpha
//     - embedding: {rows: 10000, dim: 64, initializer: uniform}   of integers: 0 to rows - 1
//
// every map also takes `name` (except that of activation, where it says which) and `device`; a layer without keys may be a plain word.
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
  std::int64_t keep = 1;  ///< newest ones that stay; 0: all
};

struct ResumeDefinition {
  enum class Kind { never, automatic, path };  ///< automatic: from the newest checkpoint in checkpoint.directory, if there is one
  Kind kind = Kind::never;
  std::string path;
};

enum class LogStyle { keras, gorgonia };
const char* name_of(LogStyle style);

/// train.yaml. Every key of Config may stand at its top level too and goes to `config`: `seed`, `deterministic`, `device`,
/// `check_numerics`, ...
struct TrainDefinition {
  ModelDefinition model;
  DataDefinition data;
  LossDefinition loss;
  OptimizerDefinition optimizer;
  std::vector<MetricDefinition> metrics;
  std::vector<CallbackDefinition> callbacks;
  std::int64_t batch_size = 32;
  std::int64_t epochs = 1;
  std::int64_t accumulate = 1;                ///< batches for one step
  std::vector<std::string> parallel_devices;  ///< that share each batch; empty: one does it all
  bool shuffle = true;
  int verbose = 1;
  LogStyle log_style = LogStyle::keras;
  std::optional<std::int64_t> steps_per_epoch;
  std::optional<CheckpointDefinition> checkpoint;
  ResumeDefinition resume;
  std::string output;  ///< folder for logs and curves; "": none is written
  Config config;       ///< a layer for resolve_config: only what the file or an override set has an origin
  std::string file;
};

/// Reading model.yaml. `overrides` are set on the tree first, keys as in the file ("layers.1.dense.units"); their errors read
/// "--set dtype=f16: key 'dtype': wanted ...".
///
/// Errors  "model.yaml:9:5: layers[2] dense: unknown key 'unit'; did you mean 'units'?" and the like.
ModelDefinition load_model(const std::string& path, const std::vector<ConfigOverride>& overrides = {});
ModelDefinition model_from_text(const std::string& text, const std::string& name = "<text>",
                                const std::vector<ConfigOverride>& overrides = {});

/// Reading train.yaml, and the model it names relative to its folder; overrides of "model.<key>" reach into that file.
TrainDefinition load_train(const std::string& path, const std::vector<ConfigOverride>& overrides = {});
/// `folder` is what relative paths in the text start from.
TrainDefinition train_from_text(const std::string& text, const std::string& name = "<text>", const std::string& folder = "",
                                const std::vector<ConfigOverride>& overrides = {});

/// A train.yaml, or a model.yaml, made as small as its model's `conformance` block says; keys of `set` that begin with "train." are the
/// train.yaml's own. Errors also: a model without one.
TrainDefinition load_cut(const std::string& path);

/// Parts of the above that model.yaml and train.yaml share. `context` stands before the keys in errors, "" for a file of its own.
ModelDefinition read_model(const Node& tree, const std::string& context = "");
Preset read_preset(Section& section);
/// Sets the overrides on a tree, as the command line's.
void apply_overrides(Node& tree, const std::vector<ConfigOverride>& overrides);

}  // namespace tenon::config
