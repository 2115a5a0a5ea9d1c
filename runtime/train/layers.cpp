// SPDX-License-Identifier: Apache-2.0
#include "train/layers.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include <tenon/error.h>

namespace tenon::train {
namespace {

using Kind = LayerDefinition::Kind;

/// An error whose message already names the layer.
struct LayerError : Error {
  using Error::Error;
};

Shape without_batch(const Shape& shape) {
  return Shape(shape.dims().subspan(1));
}

Value apply_activation(Value x, const LayerDefinition& layer) {
  switch (layer.activation) {
    case Activation::relu:
      return ops::relu(x);
    case Activation::sigmoid:
      return ops::sigmoid(x);
    case Activation::tanh:
      return ops::tanh(x);
    case Activation::softmax:
      return ops::softmax(x);
    case Activation::log_softmax:
      return ops::log_softmax(x);
    case Activation::relu6:
      return ops::relu6(x);
    case Activation::leaky_relu:
      return layer.alpha ? ops::leaky_relu(x, *layer.alpha) : ops::leaky_relu(x);
    case Activation::elu:
      return layer.alpha ? ops::elu(x, *layer.alpha) : ops::elu(x);
    case Activation::softplus:
      return ops::softplus(x);
    case Activation::mish:
      return ops::mish(x);
    case Activation::gelu:
      return ops::gelu(x);
    case Activation::silu:
      return ops::silu(x);
    case Activation::linear:
      return x;
  }
  return x;
}

std::string type_name(const LayerDefinition& layer) {
  if (layer.kind != Kind::activation) return rule_of(layer.kind).type;
  return layer.alpha ? fmt::format("Activation {} {:g}", name_of(layer.activation), *layer.alpha)
                     : fmt::format("Activation {}", name_of(layer.activation));
}

}  // namespace

const LayerRule& rule_of(Kind kind) {
  for (const std::span<const LayerRule> family : {basic_layers(), image_layers(), norm_layers(), sequence_layers()}) {
    for (const LayerRule& rule : family) {
      if (rule.kind == kind) return rule;
    }
  }
  throw Error(Status::internal, "a layer without a row in train/layers_*.cpp");
}

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t all = 1;
  for (const std::int64_t size : sizes) all *= size;
  return all;
}

LayerBuild::LayerBuild(Graph& graph, const ModelDefinition& definition, Value key, const Forward* shared, Forward& out_forward)
    : graph_(graph), definition_(definition), key_(key), shared_(shared), forward_(out_forward) {}

Value LayerBuild::parameter(const LayerDefinition& layer, const char* suffix, const Shape& shape, const Initializer& initializer,
                            Start start) {
  ParameterSpec spec;
  spec.name = fmt::format("{}{}/{}", names_.prefix, name_, suffix);
  spec.dtype = dtype();
  spec.shape = shape;
  spec.initializer = initializer;
  spec.fan_in = start.fan_in;
  spec.fan_out = start.fan_out;
  spec.block = start.block;
  spec.device = layer.device;
  const Value value =
      shared_ != nullptr ? shared_->parameters.at(forward_.parameters.size()) : graph_.parameter(spec.name, spec.dtype, shape);
  forward_.specs.push_back(std::move(spec));
  forward_.parameters.push_back(value);
  row_.parameters += shape.count();
  return value;
}

Value LayerBuild::kernel(const LayerDefinition& layer, const Shape& shape, Start start) {
  const Value value = parameter(layer, "kernel", shape, layer.kernel_initializer, start);
  forward_.specs.back().l1 = layer.kernel_l1;
  forward_.specs.back().l2 = layer.kernel_l2;
  return value;
}

Value LayerBuild::state(const LayerDefinition& layer, const char* suffix, const Shape& shape, double start) {
  ParameterSpec spec;
  spec.name = fmt::format("{}{}/{}", names_.prefix, name_, suffix);
  spec.dtype = dtype();
  spec.shape = shape;
  spec.initializer.kind = Initializer::Kind::constant;
  spec.initializer.value = start;
  spec.device = layer.device;
  const Value value =
      shared_ != nullptr ? shared_->states.at(forward_.states.size()).value : graph_.parameter(spec.name, spec.dtype, shape);
  forward_.states.push_back({std::move(spec), value, {}});
  row_.parameters += shape.count();
  row_.non_trainable += shape.count();
  return value;
}

void LayerBuild::keep(Value state, Value next) {
  for (LayerState& known : forward_.states) {
    if (known.value.id() == state.id()) known.next = next;
  }
}

Value LayerBuild::activate(const LayerDefinition& layer, Value x) {
  before_activation_ = x;
  return apply_activation(x, layer);
}

Value LayerBuild::dropout(Value x, double p) {
  // The stream is the node's index in the graph as built, so that masks do not depend on graph passes.
  return key_.present() && p > 0 ? ops::dropout(x, key_, p, static_cast<std::uint32_t>(graph_.nodes().size())) : x;
}

std::string LayerBuild::choose_name(const LayerDefinition& layer) {
  std::string name = layer.name;
  if (name.empty()) {
    const int index = names_.next_index[name_of(layer.kind)]++;
    name = index == 0 ? name_of(layer.kind) : fmt::format("{}_{}", name_of(layer.kind), index);
  }
  if (!names_.taken.insert(name).second) layer.fail(fmt::format("the name '{}' is already used by an earlier layer", name));
  return name;
}

Value LayerBuild::run_one(const LayerDefinition& layer, Value x) {
  const LayerRule& rule = rule_of(layer.kind);
  const DeviceScope device_scope(graph_, layer.device.empty() ? graph_.device() : layer.device);
  name_ = choose_name(layer);
  const NameScope name_scope(graph_, name_);
  row_ = LayerSummary{.name = names_.prefix + name_, .type = type_name(layer), .output = {}, .device = layer.device};
  before_activation_ = {};
  Value y;
  try {
    y = rule.build(*this, layer, x);
  } catch (const LayerError&) {
    throw;  // an inner layer has already added its position
  } catch (const Error& problem) {
    const std::string text = problem.what();
    const bool says_where = layer.where.empty() || text.starts_with(layer.where);
    throw LayerError(problem.status(), says_where ? text : layer.where + ": " + text);
  }
  row_.output = without_batch(y.shape());
  forward_.layers.push_back(row_);
  return y;
}

Value LayerBuild::run(const std::vector<LayerDefinition>& layers, Value x) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    x = run_one(layers[i], x);
    forward_.final_softmax = layers[i].activation == Activation::softmax && before_activation_.present();
    forward_.logits = forward_.final_softmax ? before_activation_ : x;
  }
  return x;
}

std::vector<Value> LayerBuild::run_inside(const std::vector<std::vector<LayerDefinition>>& parts, Value x) {
  const std::string name = name_;
  const LayerSummary row = row_;
  const bool were_last = features_last;
  bool any_last = false;
  Names outer = std::exchange(names_, Names{names_.prefix + name + "/", {}, {}});
  std::vector<Value> results;
  for (const std::vector<LayerDefinition>& part : parts) {
    features_last = were_last;
    results.push_back(run(part, x));
    any_last = any_last || features_last;
  }
  features_last = any_last;
  names_ = std::move(outer);
  name_ = name;
  row_ = row;
  before_activation_ = {};
  return results;
}

}  // namespace tenon::train

namespace tenon {

const char* name_of(LayerDefinition::Kind kind) {
  return train::rule_of(kind).name;
}

}  // namespace tenon
