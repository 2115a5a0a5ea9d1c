// SPDX-License-Identifier: Apache-2.0
#include "train/parameters.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "train/initializers.h"
#include "train/loss_scale.h"
#include "train/optimizers.h"
#include "train/trainable.h"

namespace tenon::train {

const Shape& Parameters::sample() const {
  if (!sample_) throw Error("model: the shape of a sample is not known yet; set `input: {shape: ...}`, or call build()");
  return *sample_;
}

Device Parameters::device_of(const ParameterSpec& spec) const {
  try {
    return setup_.device(spec.device);
  } catch (const Error& problem) {
    if (spec.device.empty()) throw;
    throw Error(problem.status(), fmt::format("layer '{}': {}", spec.name.substr(0, spec.name.rfind('/')), problem.what()));
  }
}

void Parameters::create(const ParameterSpec& spec, const std::string& name, const Tensor& value) {
  store_->create(name, device_of(spec), spec.dtype, spec.shape);
  store_->set(name, value);
}

Forward describe(Graph& graph, const ModelSetup& setup, const Shape& sample) {
  const Value x = graph.input("x", input_dtype(setup.definition), sample.with_batch(1));
  const CompileOptions& options = setup.options;
  Forward forward = train::build(graph, setup.definition, x, {}, setup.build_options());
  std::vector<std::string> names;
  for (const ParameterSpec& spec : forward.specs) names.push_back(spec.name);
  for (const std::string& glob : options.trainable) check_glob(fmt::format("trainable '{}'", glob), glob, names);
  for (const std::string& glob : options.frozen) check_glob(fmt::format("frozen '{}'", glob), glob, names);
  check_groups(options.optimizer, names);
  return forward;
}

void Parameters::choose_trainable() {
  Graph graph;
  Forward forward = describe(graph, setup_, sample());
  weights_ = std::move(forward.specs);
  layers_ = std::move(forward.layers);
}

std::vector<ParameterSpec> Parameters::learned() const {
  std::vector<ParameterSpec> specs;
  std::copy_if(weights_.begin(), weights_.end(), std::back_inserter(specs), [](const ParameterSpec& spec) { return !spec.frozen; });
  return specs;
}

void Parameters::build(const Shape& sample) {
  const Context& context = setup_.need_context();
  if (sample_) {
    if (*sample_ == sample) return;
    const ModelDefinition& definition = setup_.definition;
    const std::string file = definition.file.empty() ? "model" : definition.file;
    if (definition.input_shape) {
      throw Error(fmt::format("{}: key 'input.shape': expected {}, the shape of the data's samples, got {}; set it, or use other data",
                              file, sample.str(), sample_->str()));
    }
    throw Error(fmt::format("{}: expected samples of shape {}, for which the model was built, got {}", file, sample_->str(), sample.str()));
  }
  Graph graph;
  const Forward forward = describe(graph, setup_, sample);
  const auto initial = [&](const ParameterSpec& spec, std::uint64_t seed, std::size_t stream) {
    create(spec, spec.name, initialize(context, device_of(spec), spec, seed, static_cast<std::uint32_t>(stream)));
  };
  for (std::size_t i = 0; i < forward.specs.size(); ++i) initial(forward.specs[i], context.config().seed, i);
  std::vector<ParameterSpec> statistics;
  for (const LayerState& state : forward.states) {
    initial(state.spec, 0, 0);
    statistics.push_back(state.spec);
  }
  running_statistics_ = std::move(statistics);
  weights_ = forward.specs;
  layers_ = forward.layers;
  sample_ = sample;
}

std::map<std::string, std::pair<DType, Shape>> Parameters::types(bool with_optimizer_state) const {
  std::map<std::string, std::pair<DType, Shape>> types;
  for (const ParameterSpec& spec : running_statistics_) types[spec.name] = {spec.dtype, spec.shape};
  const OptimizerDefinition& optimizer = setup_.options.optimizer;
  for (const ParameterSpec& spec : weights_) {
    types[spec.name] = {spec.dtype, spec.shape};
    if (!with_optimizer_state || spec.frozen) continue;
    for (const std::string& suffix : rule_of(optimizer.kind).state(optimizer)) types[state_name(spec, suffix)] = {spec.dtype, spec.shape};
  }
  return types;
}

void Parameters::make_optimizer_state() {
  make_loss_scale();
  const OptimizerDefinition& optimizer = setup_.options.optimizer;
  const OptimizerRule& rule = rule_of(optimizer.kind);
  const double start = rule.start == nullptr ? 0 : *(optimizer.*rule.start);
  for (const ParameterSpec& spec : learned()) {
    for (const std::string& suffix : rule.state(optimizer)) {
      const std::string name = state_name(spec, suffix);
      if (optimizer_state_.contains(name)) continue;
      store_->create(name, device_of(spec), spec.dtype, spec.shape);
      store_->fill(name, start);
      optimizer_state_.insert(name);
    }
  }
}

void Parameters::make_loss_scale() {
  if (!store_->has(loss_scale_name)) reset_loss_scale();
}

void Parameters::reset_loss_scale() {
  if (setup_.scales_loss()) train::reset_loss_scale(*store_, setup_.device());
}

void Parameters::make_gradients() {
  make_loss_scale();
  for (const ParameterSpec& spec : learned()) store_->create(gradient_name(spec), device_of(spec), spec.dtype, spec.shape);
  store_->create(gradient_weight_name, setup_.device(), setup_.definition.dtype, {});
}

Tensor Parameters::mean_gradient(const std::string& weight) const {
  for (const ParameterSpec& spec : weights_) {
    if (spec.name != weight) continue;
    const Learns chosen = learns_of({.trainable = setup_.options.trainable});
    const char* const reason = chosen && !chosen(weight) ? "no glob of `trainable` matches it" : "a glob of `frozen` matches it";
    if (spec.frozen) throw Error(fmt::format("gradient: '{}' is frozen: {}", weight, reason));
    Tensor sum = store_->get(gradient_name(spec)).to_host();
    const double weight_sum = store_->get(gradient_weight_name).to_host().item();
    const double total = weight_sum == 0 ? 1 : weight_sum;  // as in quotient()
    const auto divide = [&](auto* values) {
      using Number = std::remove_pointer_t<decltype(values)>;
      for (std::int64_t i = 0; i < sum.count(); ++i) values[i] = static_cast<Number>(values[i] / total);
    };
    spec.dtype == DType::f64 ? divide(sum.data<double>()) : divide(sum.data<float>());
    return sum;
  }
  throw Error(fmt::format("gradient: there is no parameter '{}'", weight));
}

}  // namespace tenon::train
