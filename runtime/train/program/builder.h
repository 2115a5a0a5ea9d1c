// SPDX-License-Identifier: Apache-2.0
// train/program/builder.h - appends what training adds to the forward pass of layers/.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tenon/definition.h>
#include <tenon/functions.h>

#include "layers/definition.h"
#include "layers/forward.h"

namespace tenon::train {

using layers::build;
using layers::BuildOptions;
using layers::Forward;
using layers::ForwardOutput;
using layers::input_dtype;
using layers::LayerState;
using layers::Learns;
using layers::NamedValues;
using layers::ParameterSpec;

/// Writes the next values of the states back at the end of a run.
void update_states(Graph& graph, const Forward& forward);

/// The pass with only the parameters that learn: those that have a gradient and an optimizer step.
Forward without_frozen(Forward forward);

/// Names of graph parameters that belong to a weight: "optimizer/dense/kernel/m", "gradient/dense/kernel".
std::string state_name(const ParameterSpec& spec, const std::string& suffix);
std::string gradient_name(const ParameterSpec& spec);
/// Name of the total weight of the batches whose gradients are accumulated.
inline constexpr const char* gradient_weight_name = "gradient";

/// sum / total; where the total weight is 0, because nothing counts, the sum, which is 0.
Value quotient(Value sum, Value total);

/// Who keeps the optimizer state of each parameter that learns, and takes its step.
struct Shards {
  std::vector<int> owners;  ///< a rank for each parameter; empty: every rank takes the whole step
  int rank = 0;             ///< this one
  bool owns(std::size_t parameter) const { return owners.empty() || owners[parameter] == rank; }
};

/// Clips the gradients, then appends the optimizer's step of the parameters that this rank owns. lr: f64 or f32 scalar; step: i64 scalar,
/// from 1.
void build_step(Graph& graph, const Forward& forward, std::vector<Value> gradients, const OptimizerDefinition& optimizer, Value lr,
                Value step, const Shards& shards = {});
/// Adds weight * g to gradient/<name>, and weight to the total weight; `first` overwrites both instead. weight: a scalar of the parameters'
/// dtype.
void build_accumulation(Graph& graph, const Forward& forward, const std::vector<Value>& gradients, Value weight, bool first);
/// The mean of the gradients that build_accumulation has summed. `over_ranks`: their sums, and last that of the weights, over all ranks.
std::vector<Value> build_mean_gradients(Graph& graph, const Forward& forward,
                                        const std::function<std::vector<Value>(const std::vector<Value>&)>& over_ranks);

}  // namespace tenon::train
