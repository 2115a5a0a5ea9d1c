// SPDX-License-Identifier: Apache-2.0
#include "train/parallel.h"

#include <fmt/core.h>

#include <algorithm>

#include "layers/definition.h"

namespace tenon::train {
namespace {

/// The weights of the parts of a batch.
struct Weights {
  std::vector<Value> parts;

  /// The sum over the parts.
  Value total() const {
    Value sum = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) sum = ops::add(sum, parts[i]);
    return sum;
  }
  /// sum(weights[i] * values[i]) / total, in the values' dtype.
  Value mean(const std::vector<Value>& values) const {
    const DType dtype = values[0].dtype();
    const auto as_values = [&](Value weight) { return weight.dtype() == dtype ? weight : ops::cast(weight, dtype); };
    Value sum;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Value part = ops::mul(values[i], as_values(parts[i]));
      sum = sum.present() ? ops::add(sum, part) : part;
    }
    return quotient(sum, as_values(total()));
  }
};

}  // namespace

Gradients build_parallel(Graph& graph, const ModelSetup& setup, const NamedValues& inputs, Value key, std::span<const Value> targets,
                         Value sample_weights, const LossScale& scale) {
  const ModelDefinition& definition = setup.definition;
  const std::vector<std::string>& devices = setup.options.parallel_devices;
  layers::for_each_layer(definition.layers, [](const LayerDefinition& layer) {
    if (!layer.device.empty())
      layer.fail(fmt::format(
          "has its own device '{}', which is not supported with data parallelism over several devices; remove the device", layer.device));
  });
  const std::int64_t batch = inputs.at(0).second.shape()[0];
  const std::int64_t parts = std::min<std::int64_t>(static_cast<std::int64_t>(devices.size()), batch);
  Gradients result;
  Forward first;  // whose parameters the others share
  std::vector<Objective> objectives;
  std::vector<std::vector<Value>> gradient_of;
  std::vector<std::vector<Value>> next_states;
  Weights samples, weights, divisors;
  for (std::int64_t i = 0; i < parts; ++i) {
    const DeviceScope device(graph, devices[static_cast<std::size_t>(i)]);
    const NameScope name(graph, fmt::format("replica_{}", i));
    const std::int64_t begin = batch * i / parts;
    const std::int64_t end = batch * (i + 1) / parts;
    BuildOptions options = setup.build_options();
    options.shared = i == 0 ? nullptr : &first;
    NamedValues own_inputs = inputs;
    for (auto& [input, value] : own_inputs) value = ops::slice(value, 0, begin, end);
    Forward forward = build(graph, definition, own_inputs, key, options);
    std::vector<Value> own_targets;
    for (const Value target : targets) own_targets.push_back(ops::slice(target, 0, begin, end));
    Objective objective =
        build_objective(forward, own_targets, setup.losses, sample_weights.present() ? ops::slice(sample_weights, 0, begin, end) : Value());
    next_states.emplace_back();
    for (const LayerState& state : forward.states) next_states.back().push_back(state.next);
    if (i == 0) {
      first = std::move(forward);
      result.forward = without_frozen(first);
    }
    gradient_of.push_back(scaled_gradients(objective.loss, result.forward.parameters, scale));
    samples.parts.push_back(graph.constant(Tensor::full(definition.dtype, {}, static_cast<double>(end - begin))));
    weights.parts.push_back(objective.weight.present() ? objective.weight : samples.parts.back());
    divisors.parts.push_back(objective.divisor.present() ? objective.divisor : samples.parts.back());
    objectives.push_back(std::move(objective));
  }

  const DeviceScope device(graph, devices[0]);
  const NameScope name(graph, "combined");
  const auto combine = [&](const Weights& by, const auto& of) {
    std::vector<Value> values;
    for (std::size_t i = 0; i < objectives.size(); ++i) values.push_back(of(i));
    return by.mean(values);
  };
  result.objective.loss = combine(divisors, [&](std::size_t i) { return objectives[i].loss; });
  for (std::size_t m = 0; m < objectives[0].metrics.size(); ++m) {
    result.objective.metrics.emplace_back(objectives[0].metrics[m].first,
                                          combine(weights, [&](std::size_t i) { return objectives[i].metrics[m].second; }));
  }
  if (objectives[0].weight.present()) result.objective.weight = weights.total();
  if (objectives[0].divisor.present()) result.objective.divisor = divisors.total();
  for (std::size_t p = 0; p < result.forward.parameters.size(); ++p) {
    result.of.push_back(combine(divisors, [&](std::size_t i) { return gradient_of[i][p]; }));
  }
  for (std::size_t s = 0; s < result.forward.states.size(); ++s) {
    if (next_states[0][s].present()) result.forward.states[s].next = combine(samples, [&](std::size_t i) { return next_states[i][s]; });
  }
  return result;
}

}  // namespace tenon::train
