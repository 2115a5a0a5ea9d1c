// SPDX-License-Identifier: Apache-2.0
#include "train/parallel.h"

#include <fmt/core.h>

#include <algorithm>

#include "layers/definition.h"

namespace tenon::train {
namespace {

/// sum(weights[i] * values[i]) / total, in the values' dtype.
Value weighted_mean(const std::vector<Value>& values, const std::vector<Value>& weights, Value total) {
  Value sum;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value part = ops::mul(values[i], weights[i].dtype() == values[i].dtype() ? weights[i] : ops::cast(weights[i], values[i].dtype()));
    sum = sum.present() ? ops::add(sum, part) : part;
  }
  return ops::div(sum, total.dtype() == sum.dtype() ? total : ops::cast(total, sum.dtype()));
}

}  // namespace

Gradients build_parallel(Graph& graph, const ModelDefinition& definition, const LossDefinition& loss,
                         const std::vector<MetricDefinition>& metrics, const std::vector<std::string>& devices, Value x, Value key, Value y,
                         const LossScale& scale, const Learns& learns) {
  layers::for_each_layer(definition.layers, [](const LayerDefinition& layer) {
    if (!layer.device.empty())
      layer.fail(fmt::format(
          "has its own device '{}', which is not supported with data parallelism over several devices; remove the device", layer.device));
  });
  const std::int64_t batch = x.shape()[0];
  const std::int64_t parts = std::min<std::int64_t>(static_cast<std::int64_t>(devices.size()), batch);
  Gradients result;
  Forward first;  // whose parameters the others share
  std::vector<Objective> objectives;
  std::vector<std::vector<Value>> gradient_of;
  std::vector<std::vector<Value>> next_states;
  std::vector<Value> weights;
  for (std::int64_t i = 0; i < parts; ++i) {
    const DeviceScope device(graph, devices[static_cast<std::size_t>(i)]);
    const NameScope name(graph, fmt::format("replica_{}", i));
    const std::int64_t begin = batch * i / parts;
    const std::int64_t end = batch * (i + 1) / parts;
    Forward forward = build(graph, definition, ops::slice(x, 0, begin, end), key, i == 0 ? nullptr : &first, learns);
    Objective objective = build_objective(forward, ops::slice(y, 0, begin, end), loss, metrics);
    next_states.emplace_back();
    for (const LayerState& state : forward.states) next_states.back().push_back(state.next);
    if (i == 0) {
      first = std::move(forward);
      result.forward = without_frozen(first);
    }
    gradient_of.push_back(scaled_gradients(objective.loss, result.forward.parameters, scale));
    weights.push_back(objective.weight.present() ? objective.weight
                                                 : graph.constant(Tensor::full(definition.dtype, {}, static_cast<double>(end - begin))));
    objectives.push_back(std::move(objective));
  }

  const DeviceScope device(graph, devices[0]);
  const NameScope name(graph, "combined");
  const bool counted = objectives[0].weight.present();
  Value total = weights[0];
  for (std::size_t i = 1; i < weights.size(); ++i) total = ops::add(total, weights[i]);
  const auto combine = [&](const auto& of) {
    std::vector<Value> values;
    for (std::size_t i = 0; i < objectives.size(); ++i) values.push_back(of(i));
    return weighted_mean(values, weights, total);
  };
  result.objective.loss = combine([&](std::size_t i) { return objectives[i].loss; });
  for (std::size_t m = 0; m < objectives[0].metrics.size(); ++m) {
    result.objective.metrics.emplace_back(objectives[0].metrics[m].first,
                                          combine([&](std::size_t i) { return objectives[i].metrics[m].second; }));
  }
  if (counted) result.objective.weight = total;
  for (std::size_t p = 0; p < result.forward.parameters.size(); ++p) {
    result.of.push_back(combine([&](std::size_t i) { return gradient_of[i][p]; }));
  }
  for (std::size_t s = 0; s < result.forward.states.size(); ++s) {
    if (next_states[0][s].present()) result.forward.states[s].next = combine([&](std::size_t i) { return next_states[i][s]; });
  }
  return result;
}

}  // namespace tenon::train
