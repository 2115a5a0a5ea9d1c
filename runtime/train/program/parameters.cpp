// SPDX-License-Identifier: Apache-2.0
#include "train/program/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "text/counted.h"
#include "train/program/initializers.h"
#include "train/program/loss_scale.h"
#include "train/program/optimizers.h"
#include "train/program/stages.h"
#include "train/program/trainable.h"

namespace tenon::train {

const std::vector<SampleType>& Parameters::inputs() const {
  if (!built()) throw Error("model: the shape of a sample is not known yet; set `input: {shape: ...}`, or call build()");
  return inputs_;
}

const std::vector<SampleType>& Parameters::outputs() const {
  static_cast<void>(inputs());
  return outputs_;
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

std::vector<SampleType> input_types(const ModelSetup& setup, std::span<const Shape> samples) {
  const std::vector<layers::ModelInput>& inputs = setup.interface.inputs;
  if (samples.size() != inputs.size()) {
    throw Error(fmt::format("model: expected the shapes of samples of the inputs {}, got {}", fmt::join(setup.input_names(), ", "),
                            counted(samples.size(), "shape")));
  }
  std::vector<SampleType> types;
  for (std::size_t i = 0; i < inputs.size(); ++i) types.push_back({inputs[i].dtype, samples[i], inputs[i].name});
  return types;
}

std::vector<SampleType> output_types(const Forward& forward) {
  std::vector<SampleType> types;
  for (const ForwardOutput& of : forward.outputs) types.push_back({of.output.dtype(), Shape(of.output.shape().dims().subspan(1)), of.name});
  return types;
}

std::optional<std::vector<Shape>> known_samples(const ModelSetup& setup) {
  std::vector<Shape> samples;
  for (const layers::ModelInput& input : setup.interface.inputs) {
    if (!input.sample) return std::nullopt;
    samples.push_back(*input.sample);
  }
  return samples;
}

Forward describe(Graph& graph, const ModelSetup& setup, std::span<const Shape> samples) {
  const auto pass = [&](Graph& on, const ModelDefinition& definition) {
    NamedValues inputs;
    for (const SampleType& type : input_types(setup, samples))
      inputs.emplace_back(type.name, on.input(setup.input_name(inputs.size()), type.dtype, type.shape.with_batch(1)));
    return train::build(on, definition, inputs, {}, setup.build_options());
  };
  if (setup.is_pipeline()) {
    Graph draft;
    *setup.staged =
        divide_into_stages(setup.definition, pass(draft, setup.definition).layers, setup.options.parallel, setup.need_context());
  }
  const CompileOptions& options = setup.options;
  Forward forward = pass(graph, setup.placed_definition());
  std::vector<std::string> names;
  for (const ParameterSpec& spec : forward.specs) names.push_back(spec.name);
  for (const std::string& glob : options.trainable) check_glob(fmt::format("trainable '{}'", glob), glob, names);
  for (const std::string& glob : options.frozen) check_glob(fmt::format("frozen '{}'", glob), glob, names);
  check_groups(options.optimizer, names);
  return forward;
}

void Parameters::choose_trainable() {
  Graph graph;
  std::vector<Shape> samples;
  for (const SampleType& input : inputs()) samples.push_back(input.shape);
  Forward forward = describe(graph, setup_, samples);
  for (std::size_t i = 0; i < running_statistics_.size(); ++i) running_statistics_[i].device = forward.states.at(i).spec.device;
  weights_ = std::move(forward.specs);
  layers_ = std::move(forward.layers);
}

void Parameters::move_to_devices() {
  const auto move = [&](const std::string& name, const Device& home) {
    if (!store_->has(name) || store_->get(name).storage()->device == home.state()) return;
    const bool is_unset = store_->unset().contains(name);
    const Tensor value = store_->get(name).to_host();
    store_->erase(name);
    store_->create(name, home, value.dtype(), value.shape());
    if (!is_unset) store_->set(name, value);
  };
  for (const ParameterSpec& spec : weights_) {
    const Device home = device_of(spec);
    move(spec.name, home);
    move(gradient_name(spec), home);
    for (const std::string& suffix : rule_of(setup_.options.optimizer.kind).state(setup_.options.optimizer))
      move(state_name(spec, suffix), home);
  }
  for (const ParameterSpec& spec : running_statistics_) move(spec.name, device_of(spec));
  move(gradient_weight_name, setup_.device(setup_.loss_device()));
}

std::vector<ParameterSpec> Parameters::learned() const {
  std::vector<ParameterSpec> specs;
  std::copy_if(weights_.begin(), weights_.end(), std::back_inserter(specs), [](const ParameterSpec& spec) { return !spec.frozen; });
  return specs;
}

void Parameters::build(std::span<const Shape> samples) {
  const Context& context = setup_.need_context();
  std::vector<SampleType> types = input_types(setup_, samples);
  if (built()) {
    const auto [own, other] = std::ranges::mismatch(inputs_, types, {}, &SampleType::shape, &SampleType::shape);
    if (own == inputs_.end()) return;
    const ModelDefinition& definition = setup_.definition;
    const std::string file = definition.file.empty() ? "model" : definition.file;
    if (definition.input_shape) {
      throw Error(fmt::format("{}: key 'input.shape': expected {}, the shape of the data's samples, got {}; set it, or use other data",
                              file, other->shape.str(), own->shape.str()));
    }
    throw Error(fmt::format("{}: expected samples{} of shape {}, for which the model was built, got {}", file,
                            types.size() == 1 ? "" : fmt::format(" '{}'", own->name), own->shape.str(), other->shape.str()));
  }
  Graph graph;
  const Forward forward = describe(graph, setup_, samples);
  const auto initial = [&](ParameterSpec spec, std::uint64_t seed, std::size_t stream) {
    if (const auto found = initial_.find(spec.name); found != initial_.end()) {
      if (!(found->second.shape() == spec.shape)) {
        throw Error(fmt::format("model: parameter '{}': expected {}, as it has kept, got {} from the layers", spec.name,
                                found->second.shape().str(), spec.shape.str()));
      }
      spec.initial = found->second;
    }
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
  outputs_ = output_types(forward);
  inputs_ = std::move(types);
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
  has_optimizer_state_ = true;
  const OptimizerDefinition& optimizer = setup_.options.optimizer;
  const OptimizerRule& rule = rule_of(optimizer.kind);
  const double start = rule.start == nullptr ? 0 : *(optimizer.*rule.start);
  const std::vector<ParameterSpec> specs = learned();
  const Shards shards = setup_.shards_of(specs);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!shards.owns(i)) continue;
    for (const std::string& suffix : rule.state(optimizer)) {
      const std::string name = state_name(specs[i], suffix);
      if (optimizer_state_.contains(name)) continue;
      store_->create(name, device_of(specs[i]), specs[i].dtype, specs[i].shape);
      store_->fill(name, start);
      optimizer_state_.insert(name);
    }
  }
  for (const auto& [name, value] : given_state_) {
    if (optimizer_state_.contains(name)) store_->set(name, value);
  }
  given_state_.clear();
}

void Parameters::drop_optimizer_state() {
  for (const std::string& name : optimizer_state_) store_->erase(name);
  optimizer_state_.clear();
  has_optimizer_state_ = false;
}

std::vector<std::pair<std::string, int>> Parameters::owners_of_state() const {
  const OptimizerDefinition& optimizer = setup_.options.optimizer;
  const std::vector<ParameterSpec> specs = learned();
  const Shards shards = setup_.shards_of(specs);
  std::vector<std::pair<std::string, int>> owners;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (const std::string& suffix : rule_of(optimizer.kind).state(optimizer))
      owners.emplace_back(state_name(specs[i], suffix), shards.owners.empty() ? setup_.rank() : shards.owners[i]);
  }
  return owners;
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
  store_->create(gradient_weight_name, setup_.device(setup_.loss_device()), setup_.definition.dtype, {});
}

Tensor Parameters::mean_gradient(const std::string& weight, std::span<const Parameters* const> others) const {
  for (const ParameterSpec& spec : weights_) {
    if (spec.name != weight) continue;
    const Learns chosen = learns_of({.trainable = setup_.options.trainable});
    const char* const reason = chosen && !chosen(weight) ? "no glob of `trainable` matches it" : "a glob of `frozen` matches it";
    if (spec.frozen) throw Error(fmt::format("gradient: '{}' is frozen: {}", weight, reason));
    Tensor sum = store_->get(gradient_name(spec)).to_host();
    double weight_sum = store_->get(gradient_weight_name).to_host().item();
    std::vector<Tensor> rest;
    for (const Parameters* other : others) {
      weight_sum += other->store_->get(gradient_weight_name).to_host().item();
      rest.push_back(other->store_->get(gradient_name(spec)).to_host());
    }
    const double total = weight_sum == 0 ? 1 : weight_sum;  // as in quotient()
    const auto divide = [&](auto* values) {
      using Number = std::remove_pointer_t<decltype(values)>;
      for (std::int64_t i = 0; i < sum.count(); ++i) {
        for (const Tensor& other : rest) values[i] += other.data<Number>()[i];
        values[i] = static_cast<Number>(values[i] / total);
      }
    };
    spec.dtype == DType::f64 ? divide(sum.data<double>()) : divide(sum.data<float>());
    return sum;
  }
  throw Error(fmt::format("gradient: there is no parameter '{}'", weight));
}

}  // namespace tenon::train
