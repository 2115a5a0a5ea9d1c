// SPDX-License-Identifier: Apache-2.0
#include "layers/builder.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include <tenon/error.h>

#include "layers/activation.h"
#include "layers/defaults.h"
#include "layers/definition.h"
#include "layers/rule.h"

namespace tenon::layers {
namespace {

/// An error whose message already names the layer.
struct LayerError : Error {
  using Error::Error;
};

}  // namespace

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t all = 1;
  for (const std::int64_t size : sizes) all *= size;
  return all;
}

std::int64_t per_sample(const Shape& shape) {
  return shape[0] == 0 ? 0 : shape.count() / shape[0];
}

LayerBuilder::LayerBuilder(Graph& graph, const ModelDefinition& definition, const NamedValues& inputs, Value key,
                           const BuildOptions& options, Forward& out_forward)
    : graph_(graph), definition_(definition), inputs_(inputs), key_(key), options_(options), forward_(out_forward) {}

std::string LayerBuilder::full_name(const std::string& name) const {
  // Programs have inputs of these names.
  static const std::set<std::string> taken{"x", "y", "key", "learning_rate", "step", "sample_weights"};
  return is_whole_model() && !taken.contains(name) && !is_training_state(name) ? name : fmt::format("{}{}/{}", names_.prefix, name_, name);
}

bool LayerBuilder::learns(const std::string& name) const {
  return !options_.learns || options_.learns(full_name(name));
}

void LayerBuilder::fail(const std::string& reason) const {
  layer_->fail(fmt::format("'{}' {}", name_, reason));
}

void LayerBuilder::expect_channels_first(const Shape& shape, const std::string& remedy) const {
  if (!features_last || shape.rank() < 3) return;
  std::string order;
  for (std::size_t i = 1; i < shape.rank(); ++i) order += fmt::format("{}{}", i == 1 ? "" : ", ", i == 1 ? shape.rank() - 1 : i - 1);
  fail(
      fmt::format("expects channels as axis 1, got {} with the features last, as after an embedding, a dense or a sequence layer; put "
                  "`permute: {{order: [{}]}}` before it{}{}",
                  shape.str(), order, remedy.empty() ? "" : ", or ", remedy));
}

void LayerBuilder::expect_positive(const char* field, std::int64_t value) const {
  if (value < 1) layer_->fail(fmt::format("{} is {}, expected at least 1", field, value));
}

ParameterSpec LayerBuilder::spec_of(const std::string& name, const Shape& shape, const Initializer& initializer) const {
  ParameterSpec spec;
  spec.name = full_name(name);
  spec.dtype = dtype();
  spec.shape = shape;
  spec.initializer = initializer;
  spec.device = layer_->device;
  return spec;
}

Value LayerBuilder::parameter(const std::string& name, const Shape& shape, const Initializer& initializer, Start start) {
  ParameterSpec spec = spec_of(name, shape, initializer);
  spec.fan_in = start.fan_in;
  spec.fan_out = start.fan_out;
  spec.block = start.block;
  spec.frozen = !learns(name);
  return add_parameter(std::move(spec));
}

Value LayerBuilder::parameter(const std::string& name, const Tensor& initial, bool frozen) {
  ParameterSpec spec = spec_of(name, initial.shape(), {});
  spec.initial = initial;
  spec.frozen = frozen || !learns(name);
  return add_parameter(std::move(spec));
}

Value LayerBuilder::add_parameter(ParameterSpec spec) {
  const Forward* const shared = options_.shared;
  const Value value =
      shared != nullptr ? shared->parameters.at(forward_.parameters.size()) : graph_.parameter(spec.name, spec.dtype, spec.shape);
  row_.parameters += spec.shape.count();
  if (spec.frozen) {
    row_.non_trainable += spec.shape.count();
    row_.frozen += spec.shape.count();
  }
  forward_.specs.push_back(std::move(spec));
  forward_.parameters.push_back(value);
  return value;
}

Value LayerBuilder::kernel(const Weights& weights, const Shape& shape, Start start) {
  const Value value = parameter("kernel", shape, *weights.kernel_initializer, start);
  forward_.specs.back().l1 = weights.kernel_l1;
  forward_.specs.back().l2 = weights.kernel_l2;
  return value;
}

Value LayerBuilder::bias(const Weights& weights, const Shape& shape, Start start) {
  return weights.bias ? parameter("bias", shape, *weights.bias_initializer, start) : Value();
}

Value LayerBuilder::parameter_of(const std::string& layer, const std::string& name, const char* key) const {
  std::vector<std::string> candidates;
  for (std::size_t i = 0; i < forward_.specs.size(); ++i) {
    const std::string& known = forward_.specs[i].name;
    if (known == layer + "/" + name) return forward_.parameters[i];
    if (known.ends_with("/" + name)) candidates.push_back(known.substr(0, known.size() - name.size() - 1));
  }
  layer_->fail(fmt::format("{}: expected the name of an earlier layer with {}{}, got '{}'", key, name,
                           candidates.empty() ? " (there is none)" : fmt::format(" ({})", fmt::join(candidates, ", ")), layer));
}

Value LayerBuilder::result_of(const std::string& layer, const char* key) const {
  if (const auto found = results_.find(layer); found != results_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, value] : results_) names.push_back(name);
  layer_->fail(fmt::format("{}: expected the name of an earlier layer ({}), got '{}'", key, fmt::join(names, ", "), layer));
}

Value LayerBuilder::real_steps(std::int64_t time) const {
  return real_steps_.present() && real_steps_.shape()[1] == time ? real_steps_ : Value();
}

Value LayerBuilder::decoding_state(const std::string& name, const Shape& shape) {
  DecodingState state{fmt::format("{}{}/{}", names_.prefix, name_, name), dtype(), shape};
  const Value value = graph_.parameter(state.name, state.dtype, state.shape);
  options_.decoding->states.push_back(std::move(state));
  return value;
}

Value LayerBuilder::state(const std::string& name, const Shape& shape, double start) {
  return add_state(spec_of(name, shape, {.kind = Initializer::Kind::constant, .value = start}));
}

Value LayerBuilder::state(const std::string& name, const Tensor& initial) {
  ParameterSpec spec = spec_of(name, initial.shape(), {});
  spec.initial = initial;
  return add_state(std::move(spec));
}

Value LayerBuilder::add_state(ParameterSpec spec) {
  const Forward* const shared = options_.shared;
  const Value value =
      shared != nullptr ? shared->states.at(forward_.states.size()).value : graph_.parameter(spec.name, spec.dtype, spec.shape);
  row_.parameters += spec.shape.count();
  row_.non_trainable += spec.shape.count();
  forward_.states.push_back({std::move(spec), value, {}});
  return value;
}

void LayerBuilder::keep(Value state, Value next) {
  for (LayerState& known : forward_.states) {
    if (known.value.id() == state.id()) known.next = next;
  }
}

Value LayerBuilder::activate(const Activation& activation, Value x) {
  if (activation.alpha && !takes_alpha(activation.function)) {
    layer_->fail(fmt::format("{} takes no alpha; leaky_relu and elu do", name_of(activation.function)));
  }
  const bool has_logits = activation.function == tenon::Activation::softmax || activation.function == tenon::Activation::sigmoid;
  logits_ = has_logits ? Logits{x, activation.function} : Logits{};
  return apply(activation, x);
}

Value LayerBuilder::dropout(Value x, double p) {
  if (!(p >= 0 && p < 1)) layer_->fail(fmt::format("the probability of dropout is {}, expected at least 0 and below 1", p));
  // The stream is the node's index in the graph as built, so that masks do not depend on graph passes.
  return key_.present() && p > 0 ? ops::dropout(x, key_, p, static_cast<std::uint32_t>(graph_.nodes().size())) : x;
}

std::string LayerBuilder::choose_name() {
  std::string name = layer_->name;
  if (name.empty()) {
    const char* const kind = layer_->kind_name();
    const int index = names_.next_index[kind]++;
    name = index == 0 ? kind : fmt::format("{}_{}", kind, index);
  }
  if (!names_.taken.insert(name).second) layer_->fail(fmt::format("the name '{}' is already used by an earlier layer", name));
  return name;
}

Value LayerBuilder::run_one(const LayerDefinition& layer, Value x) {
  layer_ = &layer;
  const DeviceScope device_scope(graph_, layer.device.empty() ? graph_.device() : layer.device);
  name_ = choose_name();
  const NameScope name_scope(graph_, name_);
  logits_ = {};
  const auto build_kind = [&]<class L>(const L& kind) {
    const Rule<L> own = rule<L>();
    row_ = LayerSummary{.name = names_.prefix + name_, .type = own.type, .output = {}, .device = layer.device};
    if (options_.decoding != nullptr && (own.causal == nullptr || !own.causal(kind))) {
      fail(
          "depends on more than the steps so far, so that a sequence cannot be continued step by step; expected layers like dense, "
          "embedding, layer_norm, causal attention and lstm with return_sequences");
    }
    return own.build(*this, kind, x);
  };
  Value y;
  try {
    y = std::visit(build_kind, layer.kind);
  } catch (const LayerError&) {
    throw;  // an inner layer has already added its position
  } catch (const Error& problem) {
    const std::string text = problem.what();
    const bool says_where = layer.where.empty() || text.starts_with(layer.where);
    throw LayerError(problem.status(), says_where ? text : layer.where + ": " + text);
  }
  row_.output = Shape(y.shape().dims().subspan(1));
  forward_.layers.push_back(row_);
  results_[row_.name] = y;
  return y;
}

Value LayerBuilder::run(const std::vector<LayerDefinition>& layers, Value x) {
  for (const LayerDefinition& layer : layers) x = run_one(layer, x);
  return x;
}

ForwardOutput LayerBuilder::output_of(Value result) const {
  return {"y", result, logits_.value.present() ? logits_.value : result, logits_.of, features_last};
}

std::vector<Value> LayerBuilder::run_inside(const std::vector<const std::vector<LayerDefinition>*>& lists, Value x) {
  const LayerDefinition* const layer = layer_;
  const std::string name = name_;
  const LayerSummary row = row_;
  const bool were_last = features_last;
  bool any_last = false;
  Names outer = std::exchange(names_, Names{names_.prefix + name + "/", {}, {}});
  std::vector<Value> results;
  for (const std::vector<LayerDefinition>* const list : lists) {
    features_last = were_last;
    results.push_back(run(*list, x));
    any_last = any_last || features_last;
  }
  features_last = any_last;
  names_ = std::move(outer);
  layer_ = layer;
  name_ = name;
  row_ = row;
  logits_ = {};
  return results;
}

Forward build(Graph& graph, const ModelDefinition& definition, const NamedValues& inputs, Value key, const BuildOptions& options) {
  Forward forward;
  const Value x = inputs.at(0).second;
  const Value h = x.dtype() == definition.dtype || takes_any_dtype(definition) ? x : ops::cast(x, definition.dtype);
  ModelDefinition complete = definition;
  set_defaults(complete);
  LayerBuilder layers(graph, complete, inputs, key, options, forward);
  const Value result = layers.run(complete.layers, h);
  if (forward.outputs.empty()) forward.outputs = {layers.output_of(result)};
  return forward;
}

Forward build(Graph& graph, const ModelDefinition& definition, Value x, Value key, const BuildOptions& options) {
  return build(graph, definition, NamedValues{{"x", x}}, key, options);
}

}  // namespace tenon::layers
