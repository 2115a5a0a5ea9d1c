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
  DType dtype = DType::f32;
  Shape shape;
  Initializer initializer;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;  ///< 0: Glorot's n1 and n2 are those of the shape
  Shape block = {};          ///< drawn apart, one after the other: gates of one direction, say; empty: the whole shape
  std::string device;        ///< of its layer, as asked for
  double l1 = 0, l2 = 0;     ///< regularisation
};

/// What training keeps beside what it learns: running statistics. No gradient reaches it, no optimizer sees it.
struct LayerState {
  ParameterSpec spec;
  Value value;  ///< as the step finds it
  Value next;   ///< as it leaves it; absent outside training
};

/// The forward pass, and what it needs.
struct Forward {
  Value output;  ///< what predict returns
  Value logits;  ///< output before a final softmax; the output itself if there is none
  bool final_softmax = false;
  bool is_sequence = false;  ///< the output is (batch, time, features)
  std::vector<ParameterSpec> specs;
  std::vector<Value> parameters;  ///< per spec
  std::vector<LayerState> states;
  std::vector<LayerSummary> layers;
};

/// Appends the layers to the graph. x: (batch, sample...). `key`: absent in evaluation, where dropout is the identity.
/// Errors  a layer that does not fit what it gets: "model.yaml:9:5: layers[2] dense: wanted (batch, features), got (32,28,28); ...".
/// `shared`: an earlier pass over the same definition, whose parameters this one reads too; null: they are made.
Forward build(Graph& graph, const ModelDefinition& definition, Value x, Value key, const Forward* shared = nullptr);
/// After a run the states hold what the pass made of them.
void update_states(Graph& graph, const Forward& forward);

/// True if the first layer, flatten aside, is an embedding: integers reach it as they are.
bool starts_with_embedding(const ModelDefinition& definition);
/// What a sample is made of where no data says it: i64 in place of a floating dtype for an embedding.
DType input_dtype(const ModelDefinition& definition);

/// Parameters of the graph that hold something for each weight: "optimizer/dense/kernel/m", "gradient/dense/kernel".
std::string state_name(const ParameterSpec& spec, const std::string& suffix);
std::string gradient_name(const ParameterSpec& spec);
/// The sum of the weights of the batches whose gradients wait.
inline constexpr const char* gradient_weight_name = "gradient";

/// Clips the gradients, then takes the optimizer's step with them. lr: f64 scalar; step: i64 scalar, from 1.
void build_step(Graph& graph, const Forward& forward, std::vector<Value> gradients, const OptimizerDefinition& optimizer, Value lr,
                Value step);
/// gradient/<weight> becomes weight * g, or gains it, and the sum of weights alike. weight: a scalar of the parameters' dtype.
void build_accumulation(Graph& graph, const Forward& forward, const std::vector<Value>& gradients, Value weight, bool first);
/// What build_accumulation has gathered, as a mean.
std::vector<Value> build_mean_gradients(Graph& graph, const Forward& forward);

}  // namespace tenon::train
