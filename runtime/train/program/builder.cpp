// SPDX-License-Identifier: Apache-2.0
#include "train/program/builder.h"

#include <fmt/core.h>

#include <map>
#include <tuple>
#include <utility>

#include "graph/collectives.h"
#include "train/program/optimizers.h"

namespace tenon::train {

void update_states(Graph& graph, const Forward& forward) {
  for (const LayerState& state : forward.states) {
    if (state.next.present()) graph.update(state.value, state.next);
  }
}

Forward without_frozen(Forward forward) {
  std::vector<ParameterSpec> specs;
  std::vector<Value> parameters;
  for (std::size_t i = 0; i < forward.specs.size(); ++i) {
    if (forward.specs[i].frozen) continue;
    specs.push_back(std::move(forward.specs[i]));
    parameters.push_back(forward.parameters[i]);
  }
  forward.specs = std::move(specs);
  forward.parameters = std::move(parameters);
  return forward;
}

std::string state_name(const ParameterSpec& spec, const std::string& suffix) {
  return fmt::format("optimizer/{}/{}", spec.name, suffix);
}
std::string gradient_name(const ParameterSpec& spec) {
  return "gradient/" + spec.name;
}

Value quotient(Value sum, Value total) {
  Graph& graph = total.graph();
  const auto number = [&](double value) { return graph.constant(Tensor::full(total.dtype(), {}, value)); };
  return ops::div(sum, ops::where(ops::equal(total, number(0)), number(1), total));
}

namespace {

/// g * limit / max(norm, limit): exactly g where the norm is within the limit.
Value clip_by_norm(Graph& graph, Value g, Value norm, double limit) {
  const Value numerator = graph.constant(Tensor::full(g.dtype(), {}, limit));
  return ops::mul(g, ops::div(numerator, ops::maximum(norm, limit)));
}

void clip_gradients(Graph& graph, const Clipping& clip, std::vector<Value>& gradients) {
  for (Value& g : gradients) {
    if (clip.value) g = ops::clip(g, -*clip.value, *clip.value);
    if (clip.norm) g = clip_by_norm(graph, g, ops::sqrt(ops::reduce_sum(ops::mul(g, g))), *clip.norm);
  }
  if (!clip.global_norm) return;
  Value squares;
  for (const Value g : gradients) {
    const Value square = ops::reduce_sum(ops::mul(g, g));
    squares = squares.present() ? ops::add(squares, square) : square;
  }
  const Value norm = ops::sqrt(squares);
  for (Value& g : gradients) g = clip_by_norm(graph, g, norm, *clip.global_norm);
}

}  // namespace

void build_step(Graph& graph, const Forward& forward, std::vector<Value> gradients, const OptimizerDefinition& optimizer, Value lr,
                Value step, const Shards& shards) {
  std::vector<NodeId> bucket(gradients.size(), no_id);  // the sum over ranks that a gradient comes from
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const NodeId producer = graph.info(gradients[i].id()).producer;
    if (producer != no_id && graph::is_collective(graph.nodes()[producer].op)) bucket[i] = producer;
  }
  clip_gradients(graph, optimizer.clip, gradients);
  const std::vector<std::string> suffixes = rule_of(optimizer.kind).state(optimizer);
  struct Part {
    std::vector<Value> parameters, gradients, state;
  };
  // Each weight is updated on the device of its layer, and those with the same options whose gradients come together, together.
  std::map<std::tuple<std::string, const ParameterGroup*, NodeId>, Part> parts;
  for (std::size_t i = 0; i < forward.specs.size(); ++i) {
    if (!shards.owns(i)) continue;
    const ParameterSpec& spec = forward.specs[i];
    Part& part = parts[{spec.device, group_of(optimizer, spec.name), bucket[i]}];
    part.parameters.push_back(forward.parameters[i]);
    part.gradients.push_back(gradients[i]);
    for (const std::string& suffix : suffixes) part.state.push_back(graph.parameter(state_name(spec, suffix), spec.dtype, spec.shape));
  }
  for (const auto& [key, part] : parts) {
    const auto& [device, group, from] = key;
    const DeviceScope scope(graph, device);
    const bool scaled = group != nullptr && group->learning_rate_factor != 1;
    const OptimizerDefinition own = with_group(optimizer, group);
    rule_of(own.kind).build(
        {own, part.parameters, part.gradients, part.state, scaled ? ops::mul(lr, group->learning_rate_factor) : lr, step});
  }
}

void build_accumulation(Graph& graph, const Forward& forward, const std::vector<Value>& gradients, Value weight, bool first) {
  for (std::size_t i = 0; i < forward.specs.size(); ++i) {
    const ParameterSpec& spec = forward.specs[i];
    const DeviceScope scope(graph, spec.device);
    const Value sum = graph.parameter(gradient_name(spec), spec.dtype, spec.shape);
    const Value part = ops::mul(gradients[i], weight);
    graph.update(sum, first ? part : ops::add(sum, part));
  }
  const Value total = graph.parameter(gradient_weight_name, weight.dtype(), {});
  graph.update(total, first ? weight : ops::add(total, weight));
}

std::vector<Value> build_mean_gradients(Graph& graph, const Forward& forward,
                                        const std::function<std::vector<Value>(const std::vector<Value>&)>& over_ranks) {
  std::vector<Value> sums;
  for (const ParameterSpec& spec : forward.specs) sums.push_back(graph.parameter(gradient_name(spec), spec.dtype, spec.shape));
  sums.push_back(graph.parameter(gradient_weight_name, forward.specs.at(0).dtype, {}));
  sums = over_ranks(sums);
  std::vector<Value> means;
  for (std::size_t i = 0; i < forward.specs.size(); ++i) {
    const DeviceScope scope(graph, forward.specs[i].device);
    means.push_back(quotient(sums[i], sums.back()));
  }
  return means;
}

}  // namespace tenon::train
