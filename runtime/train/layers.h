// SPDX-License-Identifier: Apache-2.0
// train/layers.h - the kinds of layers, one row each in the file of its family. A new kind needs an enumerator in tenon/definition.h, a row
// in layers_<family>.cpp here, and a row in config/layers_*yaml.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <tenon/definition.h>
#include <tenon/functions.h>

#include "train/builder.h"

namespace tenon::train {

/// Builds layers: holds the graph, the parameters created so far and the summary row of the current layer.
class LayerBuild {
 public:
  LayerBuild(Graph& graph, const ModelDefinition& definition, Value key, const Forward* shared, Forward& out_forward);

  Graph& graph() const { return graph_; }
  DType dtype() const { return definition_.dtype; }
  bool training() const { return key_.present(); }
  /// Absent outside training.
  Value key() const { return key_; }
  /// The layer's name, without the names of enclosing layers.
  const std::string& name() const { return name_; }
  LayerSummary& row() { return row_; }

  /// Initialisation of a parameter beyond its shape.
  struct Start {
    std::int64_t fan_in = 0;
    std::int64_t fan_out = 0;  ///< 0: Glorot's n1 and n2 come from the shape
    Shape block = {};          ///< initialised block by block; empty: all at once
  };
  /// Creates the parameter "<layer>/<suffix>" and counts it in the summary row.
  Value parameter(const LayerDefinition& layer, const char* suffix, const Shape& shape, const Initializer& initializer, Start start);
  /// Creates the layer's kernel, with its regularisation.
  Value kernel(const LayerDefinition& layer, const Shape& shape, Start start);
  /// Creates the non-trainable state "<layer>/<suffix>", initialised to `start`.
  Value state(const LayerDefinition& layer, const char* suffix, const Shape& shape, double start);
  /// Sets the value of a state after a training step.
  void keep(Value state, Value next);
  /// Applies the layer's activation; remembers its input, so that a loss can use the scores before a softmax.
  Value activate(const LayerDefinition& layer, Value x);
  /// Applies dropout with probability p; the identity outside training.
  Value dropout(Value x, double p);

  /// Applies the layers in order. Inside a layer, their names are prefixed with its name.
  Value run(const std::vector<LayerDefinition>& layers, Value x);
  /// Applies each list of inner layers to x; all lists share one set of names. Features are last afterwards if any list puts them
  /// there.
  std::vector<Value> run_inside(const std::vector<std::vector<LayerDefinition>>& parts, Value x);

  /// True if the last axis of x holds the features, as after an embedding, a dense or a sequence layer; else the first axis of a sample
  /// holds the channels.
  bool features_last = false;

 private:
  struct Names {
    std::string prefix;  ///< "residual_3/"
    std::map<std::string, int> next_index;
    std::set<std::string> taken;
  };
  std::string choose_name(const LayerDefinition& layer);
  Value run_one(const LayerDefinition& layer, Value x);

  Graph& graph_;
  const ModelDefinition& definition_;
  Value key_;
  const Forward* shared_;
  Forward& forward_;
  Names names_;
  std::string name_;
  LayerSummary row_;
  Value before_activation_;
};

struct LayerRule {
  LayerDefinition::Kind kind;
  const char* name;  ///< in YAML
  const char* type;  ///< in the summary
  /// Appends the layer. Errors  x does not fit (LayerDefinition::fail).
  Value (*build)(LayerBuild& build, const LayerDefinition& layer, Value x);
};
const LayerRule& rule_of(LayerDefinition::Kind kind);

std::span<const LayerRule> basic_layers();
std::span<const LayerRule> image_layers();
std::span<const LayerRule> norm_layers();
std::span<const LayerRule> sequence_layers();

/// Calls visit for each layer, including inner layers.
template <class Visit>
void for_each_layer(const std::vector<LayerDefinition>& layers, const Visit& visit) {
  for (const LayerDefinition& layer : layers) {
    visit(layer);
    for (const std::vector<LayerDefinition>& part : layer.parts) for_each_layer(part, visit);
  }
}

/// The product of the sizes.
std::int64_t product(std::span<const std::int64_t> sizes);

}  // namespace tenon::train
