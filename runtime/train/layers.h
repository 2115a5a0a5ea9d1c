// train/layers.h - kinds of layers: a row each, in the file of its family. A new one is an enumerator in tenon/definition.h, a row in a
// layers_<family>.cpp here, and one in config/layers_yaml.cpp.
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

/// What a layer's row builds with: the graph, the parameters that it asks for, and the row of the summary that it fills.
class LayerBuild {
 public:
  LayerBuild(Graph& graph, const ModelDefinition& definition, Value key, const Forward* shared, Forward& out_forward);

  Graph& graph() const { return graph_; }
  DType dtype() const { return definition_.dtype; }
  bool training() const { return key_.present(); }
  /// Absent outside training.
  Value key() const { return key_; }
  /// The layer's name, without those of the layers around it.
  const std::string& name() const { return name_; }
  LayerSummary& row() { return row_; }

  /// Where a parameter starts from, beyond what its shape says.
  struct Start {
    std::int64_t fan_in = 0;
    std::int64_t fan_out = 0;  ///< 0: Glorot's n1 and n2 are those of the shape
    Shape block = {};          ///< drawn apart, one after the other; empty: all at once
  };
  /// "<layer>/<suffix>", counted in the row.
  Value parameter(const LayerDefinition& layer, const char* suffix, const Shape& shape, const Initializer& initializer, Start start);
  /// The layer's kernel: regularised as it says.
  Value kernel(const LayerDefinition& layer, const Shape& shape, Start start);
  /// "<layer>/<suffix>": what training keeps beside what it learns. It starts at `start`.
  Value state(const LayerDefinition& layer, const char* suffix, const Shape& shape, double start);
  /// What it holds after a step of training.
  void keep(Value state, Value next);
  /// The layer's activation, remembered so that a loss may take what was before a softmax.
  Value activate(const LayerDefinition& layer, Value x);
  /// With the layer's probability p, where there is a key.
  Value dropout(Value x, double p);

  /// One layer after the other; within a layer, their names begin with its own.
  Value run(const std::vector<LayerDefinition>& layers, Value x);
  /// The same for the lists of one layer: one set of names.
  std::vector<Value> run_inside(const std::vector<std::vector<LayerDefinition>>& parts, Value x);

  /// True if x is (batch, time, features): what comes from an embedding or a layer that reads sequences. Dense layers go step by step then.
  bool is_sequence = false;

 private:
  struct Names {
    std::string prefix;  ///< "residual_3/"
    std::map<std::string, int> numbers;
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
  const char* type;  ///< what the summary calls it
  /// Appends the layer. Errors  LayerDefinition::fail where x does not fit.
  Value (*build)(LayerBuild& build, const LayerDefinition& layer, Value x);
};
const LayerRule& rule_of(LayerDefinition::Kind kind);

std::span<const LayerRule> basic_layers();
std::span<const LayerRule> image_layers();
std::span<const LayerRule> norm_layers();
std::span<const LayerRule> sequence_layers();

/// Calls visit for each layer, those inside others too.
template <class Visit>
void for_each_layer(const std::vector<LayerDefinition>& layers, const Visit& visit) {
  for (const LayerDefinition& layer : layers) {
    visit(layer);
    for (const std::vector<LayerDefinition>& part : layer.parts) for_each_layer(part, visit);
  }
}

/// Of a list of sizes.
std::int64_t product(std::span<const std::int64_t> sizes);

}  // namespace tenon::train
