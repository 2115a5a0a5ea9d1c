// SPDX-License-Identifier: Apache-2.0
// layers/forward.h - builds the forward pass of a model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/definition.h>
#include <tenon/functions.h>
#include <tenon/model.h>

namespace tenon::layers {

/// A parameter that a layer needs.
struct ParameterSpec {
  std::string name;  ///< "dense_1/kernel"
  DType dtype = DType::f32;
  Shape shape;
  Initializer initializer;
  Tensor initial = {};  ///< the initial elements, on the host; undefined: those of `initializer`
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;  ///< 0: Glorot's n1 and n2 come from the shape
  Shape block = {};          ///< initialised block by block, e.g. the gates of one direction; empty: the whole shape
  std::string device;        ///< the device requested for its layer
  double l1 = 0, l2 = 0;     ///< regularisation
  bool frozen = false;       ///< it does not learn
};

/// Non-trainable state such as running statistics: it has no gradient and the optimizer does not update it.
struct LayerState {
  ParameterSpec spec;
  Value value;  ///< before the step
  Value next;   ///< after the step; absent outside training
};

/// A result of the forward pass, with what losses ask of it.
struct ForwardOutput {
  std::string name = {};                                           ///< as in Interface
  Value output = {};                                               ///< the result of predict
  Value logits = {};                                               ///< the input of a final softmax or sigmoid; the output if there is none
  tenon::Activation final_activation = tenon::Activation::linear;  ///< softmax, sigmoid, or linear for all others
  bool features_last = false;                                      ///< the output is (batch, ..., features), not (batch, channels, ...)
};

/// The forward pass and its parameters.
struct Forward {
  std::vector<ForwardOutput> outputs;  ///< as in Interface
  std::vector<ParameterSpec> specs;
  std::vector<Value> parameters;  ///< per spec
  std::vector<LayerState> states;
  std::vector<LayerSummary> layers;
};

struct Decoding;  // layers/decoding.h
class Sources;    // layers/sources.h

/// Whether a parameter of this name learns; empty: all do.
using Learns = std::function<bool(const std::string& parameter)>;

/// The part that a rank has of a batch that several ranks share.
struct BatchShare {
  std::int64_t counted = 0;  ///< samples of this rank; 0: its only one counts for nothing
  std::int64_t whole = 0;    ///< samples of all ranks
};

/// What a pass is built with beyond its definition.
struct BuildOptions {
  /// An earlier pass over the same definition whose parameters this pass reuses; null: new parameters are created.
  const Forward* shared = nullptr;
  /// What it rejects is marked as frozen, and batch normalisation without any parameter that learns uses its running statistics.
  Learns learns = {};
  /// x holds the next steps of one sequence, and the states that layers keep are added to this; null: x holds whole sequences.
  Decoding* decoding = nullptr;
  const Context* context = nullptr;  ///< for layers that import a file; null: those are errors
  Sources* sources = nullptr;        ///< the files opened so far; null with `context` alone
  /// Batch normalisation in training uses the statistics of all ranks; nothing: those of x.
  std::optional<BatchShare> sync_batch_norm = {};
};

/// The inputs of a pass, (batch, sample...), by the names of Interface.
using NamedValues = std::vector<std::pair<std::string, Value>>;

/// Appends the layers to the graph. `key` is absent in evaluation, where dropout is the identity.
/// Errors  a layer does not fit its input: "model.yaml:9:5: layers[2] dense: 'dense' expects (batch, ..., features), got (32)".
Forward build(Graph& graph, const ModelDefinition& definition, const NamedValues& inputs, Value key, const BuildOptions& options = {});
/// The same for a model with one input.
Forward build(Graph& graph, const ModelDefinition& definition, Value x, Value key, const BuildOptions& options = {});

}  // namespace tenon::layers
