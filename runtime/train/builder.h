// train/builder.h - layers to graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/definition.h>
#include <tenon/functions.h>
#include <tenon/model.h>

namespace tenon::train {

/// A parameter that a layer wants.
struct ParameterSpec {
  std::string name;  ///< "dense_1/kernel"
  DType dtype;
  Shape shape;
  Initializer initializer;
  std::int64_t fan_in;
  std::string device;  ///< of its layer, as asked for
};

/// The forward pass, and what it needs.
struct Forward {
  Value output;  ///< what predict returns
  Value logits;  ///< output before a final softmax; the output itself if there is none
  bool final_softmax = false;
  std::vector<ParameterSpec> specs;
  std::vector<Value> parameters;  ///< per spec
  std::vector<LayerSummary> layers;
};

/// Appends the layers to the graph. x: (batch, sample...). `key`: absent in evaluation, where dropout is the identity.
/// Errors  a layer that does not fit what it gets: "model.yaml:9:5: layers[2] dense: wanted (batch, features), got (32,28,28); ...".
Forward build(Graph& graph, const ModelDefinition& definition, Value x, Value key);

/// Loss and metrics as scalars. y: labels (batch) or targets of the output's shape.
struct Objective {
  Value loss;
  std::vector<std::pair<std::string, Value>> metrics;  ///< means over the batch
};
Objective build_objective(const Forward& forward, Value y, const LossDefinition& loss, const std::vector<Metric>& metrics);

/// The optimizer's state beside each parameter, by suffix: {"m", "v"} for adam.
std::vector<std::string> state_names(const OptimizerDefinition& optimizer);

/// Gradients of the loss and the step that applies them. lr: f64 scalar; step: i64 scalar, from 1.
void build_update(Graph& graph, const Objective& objective, const Forward& forward, const OptimizerDefinition& optimizer, Value lr,
                  Value step);

}  // namespace tenon::train
