// SPDX-License-Identifier: Apache-2.0
// layers/builder.h - appends layers to a graph.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/definition.h>
#include <tenon/functions.h>

#include "layers/decoding.h"
#include "layers/definition.h"
#include "layers/forward.h"

namespace tenon::layers {

/// Builds layers: holds the graph, the parameters created so far and the summary row of the current layer.
class LayerBuilder {
 public:
  LayerBuilder(Graph& graph, const ModelDefinition& definition, const NamedValues& inputs, Value key, const BuildOptions& options,
               Forward& out_forward);

  Graph& graph() const { return graph_; }
  DType dtype() const { return definition_.dtype; }
  bool training() const { return key_.present(); }
  Value key() const { return key_; }  ///< u64(2), the seed of a training step; absent: inference
  const BuildOptions& options() const { return options_; }
  /// The inputs of the model.
  const NamedValues& inputs() const { return inputs_; }
  /// True if the current layer is the model: it may have several inputs and outputs.
  bool is_whole_model() const { return is_one_file(definition_) && names_.prefix.empty(); }
  /// Whether the parameter "<layer>/<name>" learns, or would if it existed.
  bool learns(const std::string& name) const;
  LayerSummary& row() { return row_; }

  /// Throws "<where>: '<name>' <reason>".
  [[noreturn]] void fail(const std::string& reason) const;
  /// Errors  x has its features last, although the layer takes axis 1 for the channels. `remedy` is another one than permute.
  void expect_channels_first(const Shape& shape, const std::string& remedy = {}) const;
  /// Errors  "<where>: units is 0, expected at least 1".
  void expect_positive(const char* field, std::int64_t value) const;

  /// Initialisation of a parameter beyond its shape.
  struct Start {
    std::int64_t fan_in = 0;
    std::int64_t fan_out = 0;  ///< 0: Glorot's n1 and n2 come from the shape
    Shape block = {};          ///< initialised block by block; empty: all at once
  };
  /// Creates the parameter "<layer>/<name>" and counts it in the summary row.
  Value parameter(const std::string& name, const Shape& shape, const Initializer& initializer, Start start);
  /// Creates a parameter with these initial elements on the host, as "<layer>/<name>", or `name` if the model has no other layer and
  /// nothing else has the name.
  /// `frozen`: it does not learn, whatever trainable says.
  Value parameter(const std::string& name, const Tensor& initial, bool frozen);
  /// Creates a non-trainable state in the same way.
  Value state(const std::string& name, const Tensor& initial);
  /// Creates the layer's kernel, with its regularisation.
  Value kernel(const Weights& weights, const Shape& shape, Start start);
  /// Creates the layer's bias; absent if it has none.
  Value bias(const Weights& weights, const Shape& shape, Start start);
  /// The parameter "<layer>/<name>" of an earlier layer. Errors  name `key`, which asks for it, and the layers that have one.
  Value parameter_of(const std::string& layer, const std::string& name, const char* key) const;
  /// The result of an earlier layer. Errors  as above.
  Value result_of(const std::string& layer, const char* key) const;
  /// Creates the non-trainable state "<layer>/<name>", initialised to `start`.
  Value state(const std::string& name, const Shape& shape, double start);
  /// Sets the value of a state after a training step.
  void keep(Value state, Value next);
  /// Applies the layer's activation; remembers its input, so that a loss can use the scores before a softmax or sigmoid.
  Value activate(const Activation& activation, Value x);
  /// Sets the outputs of a model of this layer alone.
  void set_outputs(std::vector<ForwardOutput> outputs) { forward_.outputs = std::move(outputs); }
  /// Declares that the layer's result is softmax or sigmoid of these scores, for losses that use them instead.
  void set_scores(Value scores, tenon::Activation of) { logits_ = {scores, of}; }
  /// Declares that steps are padding where `real`, bool(batch, time), is false.
  void set_real_steps(Value real) { real_steps_ = real; }
  /// That value if it has this number of steps; absent: no step is padding.
  Value real_steps(std::int64_t time) const;
  /// The pass over the next steps of a sequence; null: x holds whole sequences.
  const Decoding* decoding() const { return options_.decoding; }
  /// A parameter "<layer>/<name>" that the layer keeps between such passes by Graph::update.
  Value decoding_state(const std::string& name, const Shape& shape);
  /// Applies dropout with probability p; the identity outside training.
  Value dropout(Value x, double p);

  /// Applies the layers in order. Inside a layer, their names are prefixed with its name.
  Value run(const std::vector<LayerDefinition>& layers, Value x);
  /// The result of the model's last layer as its output.
  ForwardOutput output_of(Value result) const;
  /// Applies each list of inner layers to x; all lists share one set of names. Features are last afterwards if any list puts them
  /// there.
  std::vector<Value> run_inside(const std::vector<const std::vector<LayerDefinition>*>& lists, Value x);

  /// True if the last axis of x holds the features, as after an embedding, a dense or a sequence layer; else the first axis of a sample
  /// holds the channels.
  bool features_last = false;

 private:
  struct Names {
    std::string prefix;  ///< "residual_3/"
    std::map<std::string, int> next_index;
    std::set<std::string> taken;
  };
  /// "<layer>/<name>" with the names of enclosing layers. What a file brings along keeps its name in a model of nothing else.
  std::string full_name(const std::string& name) const;
  ParameterSpec spec_of(const std::string& name, const Shape& shape, const Initializer& initializer) const;
  Value add_parameter(ParameterSpec spec);
  Value add_state(ParameterSpec spec);
  std::string choose_name();
  Value run_one(const LayerDefinition& layer, Value x);

  Graph& graph_;
  const ModelDefinition& definition_;
  const NamedValues& inputs_;
  Value key_;
  const BuildOptions& options_;
  Forward& forward_;
  std::map<std::string, Value> results_;  ///< by layer
  Value real_steps_;
  Names names_;
  // The current layer.
  const LayerDefinition* layer_ = nullptr;
  std::string name_;  ///< without the names of enclosing layers
  LayerSummary row_;
  struct Logits {
    Value value = {};
    tenon::Activation of = tenon::Activation::linear;
  };
  Logits logits_;  ///< the input of the layer's softmax or sigmoid
};

/// The product of the sizes.
std::int64_t product(std::span<const std::int64_t> sizes);
/// The number of elements of a sample.
std::int64_t per_sample(const Shape& shape);

}  // namespace tenon::layers
