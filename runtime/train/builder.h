// SPDX-License-Identifier: Apache-2.0
// train/builder.h - builds graphs from model definitions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/definition.h>
#include <tenon/functions.h>
#include <tenon/model.h>

namespace tenon::train {

/// A parameter that a layer needs.
struct ParameterSpec {
  std::string name;  ///< "dense_1/kernel"
  DType dtype = DType::f32;
  Shape shape;
  Initializer initializer;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;  ///< 0: Glorot's n1 and n2 come from the shape
  Shape block = {};          ///< initialised block by block, e.g. the gates of one direction; empty: the whole shape
  std::string device;        ///< the device requested for its layer
  double l1 = 0, l2 = 0;     ///< regularisation
};

/// Non-trainable state such as running statistics: it has no gradient and the optimizer does not update it.
struct LayerState {
  ParameterSpec spec;
  Value value;  ///< before the step
  Value next;   ///< after the step; absent outside training
};

/// The forward pass and its parameters.
struct Forward {
  Value output;  ///< the result of predict
  Value logits;  ///< the input of a final softmax; the output if there is none
  bool final_softmax = false;
  bool features_last = false;  ///< the output is (batch, ..., features), not (batch, channels, ...)
  std::vector<ParameterSpec> specs;
  std::vector<Value> parameters;  ///< per spec
  std::vector<LayerState> states;
  std::vector<LayerSummary> layers;
};

/// Appends the layers to the graph. x: (batch, sample...). `key` is absent in evaluation, where dropout is the identity. `shared` is an
/// earlier pass over the same definition whose parameters this pass reuses; null: new parameters are created.
/// Errors  a layer does not fit its input: "model.yaml:9:5: layers[2] dense: 'dense' expects (batch, ..., features), got (32)".
Forward build(Graph& graph, const ModelDefinition& definition, Value x, Value key, const Forward* shared = nullptr);
/// Writes the next values of the states back at the end of a run.
void update_states(Graph& graph, const Forward& forward);

/// True if the first layer other than flatten is an embedding; its integer inputs are not cast.
bool starts_with_embedding(const ModelDefinition& definition);
/// The dtype of a sample if no data is given: i64 instead of a floating dtype for an embedding.
DType input_dtype(const ModelDefinition& definition);

/// Names of graph parameters that belong to a weight: "optimizer/dense/kernel/m", "gradient/dense/kernel".
std::string state_name(const ParameterSpec& spec, const std::string& suffix);
std::string gradient_name(const ParameterSpec& spec);
/// Name of the total weight of the batches whose gradients are accumulated.
inline constexpr const char* gradient_weight_name = "gradient";

/// Clips the gradients, then appends the optimizer's step. lr: f64 scalar; step: i64 scalar, from 1.
void build_step(Graph& graph, const Forward& forward, std::vector<Value> gradients, const OptimizerDefinition& optimizer, Value lr,
                Value step);
/// Adds weight * g to gradient/<name>, and weight to the total weight; `first` overwrites both instead. weight: a scalar of the parameters'
/// dtype.
void build_accumulation(Graph& graph, const Forward& forward, const std::vector<Value>& gradients, Value weight, bool first);
/// The mean of the gradients that build_accumulation has summed.
std::vector<Value> build_mean_gradients(Graph& graph, const Forward& forward);

}  // namespace tenon::train
