// SPDX-License-Identifier: Apache-2.0
#include "train/parameters.h"

#include <fmt/core.h>

#include <type_traits>

#include "train/initializers.h"
#include "train/loss_scale.h"
#include "train/optimizers.h"

namespace tenon::train {

const Shape& Parameters::sample() const {
  if (!sample_) throw Error("model: the shape of a sample is not known yet; set `input: {shape: ...}`, or call build()");
  return *sample_;
}

void Parameters::create(const ParameterSpec& spec, const std::string& name, const Tensor& value) {
  store_->create(name, setup_.device(spec.device), spec.dtype, spec.shape);
  store_->set(name, value);
}

void Parameters::build(const Shape& sample) {
  const Context& context = setup_.need_context();
  if (sample_) {
    if (!(*sample_ == sample)) throw Error(fmt::format("model: built for samples {}, got {}", sample_->str(), sample.str()));
    return;
  }
  Graph graph;
  const Value x = graph.input("x", input_dtype(setup_.definition), sample.with_batch(1));
  const Forward forward = train::build(graph, setup_.definition, x, {});
  const auto initial = [&](const ParameterSpec& spec, std::uint64_t seed, std::size_t stream) {
    create(spec, spec.name, initialize(context, setup_.device(spec.device), spec, seed, static_cast<std::uint32_t>(stream)));
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
    if (!with_optimizer_state) continue;
    for (const std::string& suffix : rule_of(optimizer.kind).state(optimizer)) types[state_name(spec, suffix)] = {spec.dtype, spec.shape};
  }
  return types;
}

void Parameters::make_optimizer_state() {
  make_loss_scale();
  const OptimizerDefinition& optimizer = setup_.options.optimizer;
  const OptimizerRule& rule = rule_of(optimizer.kind);
  const double start = rule.start == nullptr ? 0 : (optimizer.*rule.start).value_or(0);
  for (const ParameterSpec& spec : weights_) {
    for (const std::string& suffix : rule.state(optimizer)) {
      const std::string name = state_name(spec, suffix);
      if (optimizer_state_.contains(name)) continue;
      create(spec, name, Tensor::full(spec.dtype, spec.shape, start));
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
  for (const ParameterSpec& spec : weights_) store_->create(gradient_name(spec), setup_.device(spec.device), spec.dtype, spec.shape);
  store_->create(gradient_weight_name, setup_.device(), setup_.definition.dtype, {});
}

Tensor Parameters::mean_gradient(const std::string& weight) const {
  for (const ParameterSpec& spec : weights_) {
    if (spec.name != weight) continue;
    Tensor sum = store_->get(gradient_name(spec)).to_host();
    const double total = store_->get(gradient_weight_name).to_host().item();
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
