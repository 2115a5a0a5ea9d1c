// SPDX-License-Identifier: Apache-2.0
#include "train/programs.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes.h"
#include "train/trainable.h"

namespace tenon::train {
namespace {

bool computes_gradients(Phase phase) {
  return phase == Phase::train || phase == Phase::backward_first || phase == Phase::backward_more;
}

void output_objective(Graph& graph, const Objective& objective) {
  graph.output("loss", objective.loss);
  for (const auto& [name, value] : objective.metrics) graph.output(name, value);
  if (objective.weight.present()) graph.output("weight", objective.weight);
}

/// Appends the optimizer's step, whose learning rate and index are inputs.
void add_step(Graph& graph, const Forward& forward, const std::vector<Value>& gradients, const OptimizerDefinition& optimizer,
              const LossScale& scale, DType rate_dtype) {
  const Value rate = graph.input("learning_rate", rate_dtype, {});
  const Value step = graph.input("step", DType::i64, {});
  build_step(graph, forward, gradients, optimizer, rate, step_to_take(step, scale));
}

/// Parameters that do not learn, and running statistics that stay.
std::set<std::string> names_of_frozen(const Forward& forward) {
  std::set<std::string> names;
  for (const ParameterSpec& spec : forward.specs) {
    if (spec.frozen) names.insert(spec.name);
  }
  for (const LayerState& state : forward.states) {
    if (!state.next.present()) names.insert(state.spec.name);
  }
  return names;
}

/// Absent without sample weights.
Value add_sample_weights(Graph& graph, const BatchType& batch) {
  return batch.weights.dtype == DType::none ? Value() : graph.input("sample_weights", batch.weights.dtype, batch.weights.shape);
}

}  // namespace

void BatchType::assign(const BatchTensors& batch) {
  const auto take = [](std::vector<Part>& parts, std::span<const Tensor> tensors) {
    parts.clear();
    for (const Tensor& tensor : tensors) parts.push_back({tensor.dtype(), tensor.shape()});
  };
  take(inputs, batch.inputs);
  take(targets, batch.targets);
  weights = batch.sample_weights.defined() ? Part{batch.sample_weights.dtype(), batch.sample_weights.shape()} : Part{};
}

BatchType BatchType::of(std::span<const SampleType> inputs, std::int64_t size) {
  BatchType type;
  for (const SampleType& input : inputs) type.inputs.push_back({input.dtype, input.shape.with_batch(size)});
  return type;
}

BatchType BatchType::of(const ModelSetup& setup, std::span<const SampleType> inputs, std::span<const SampleType> outputs,
                        std::int64_t size) {
  BatchType type = of(inputs, size);
  for (const OutputLoss& of : setup.losses) {
    const auto output = std::ranges::find(outputs, of.output, &SampleType::name);
    const auto [dtype, shape] = target_type(of.loss, (of.output.empty() ? outputs.front() : *output).shape, size);
    type.targets.push_back({dtype, shape});
  }
  return type;
}

Program& Programs::get(Phase phase, const BatchType& batch, const RunOptions& run) {
  key_.clear();
  key_.add(phase);
  for (const auto* parts : {&batch.inputs, &batch.targets}) {
    key_.add(parts->size());
    for (const BatchType::Part& part : *parts) key_.add(part.dtype, part.shape);
  }
  key_.add(batch.weights.dtype, batch.weights.shape);
  return cache_.get(key_.bytes(), [&] {
    ProgramOptions chosen = options(run);
    const Graph graph = graph_of(phase, batch, &chosen.fixed);  // errors of the model come before its memory
    if (phase == Phase::train) parameters_.make_optimizer_state();
    if (phase == Phase::backward_first || phase == Phase::backward_more) parameters_.make_gradients();
    return Program(setup_.need_context(), graph, chosen);
  });
}

DType Programs::rate_dtype() const {
  if (rate_dtype_) return *rate_dtype_;
  const auto wide = [&](const ParameterSpec& spec) { return setup_.device(spec.device).info().holds(DType::f64); };
  const bool all_wide = setup_.device().info().holds(DType::f64) && std::ranges::all_of(parameters_.weights(), wide);
  const DType dtype = all_wide ? DType::f64 : DType::f32;
  if (parameters_.built()) rate_dtype_ = dtype;
  return dtype;
}

std::vector<MemoryPlan> Programs::plan_memory(Phase phase, const BatchType& batch) const {
  ProgramOptions chosen = options();
  const Graph graph = graph_of(phase, batch, &chosen.fixed);
  return Program::plan_memory(setup_.need_context(), graph, chosen);
}

Program& Programs::apply(const RunOptions& run) {
  return cache_.get("apply", [&] {
    parameters_.make_optimizer_state();
    Graph graph;
    Forward f;
    f.specs = parameters_.learned();
    for (const ParameterSpec& spec : f.specs) f.parameters.push_back(graph.parameter(spec.name, spec.dtype, spec.shape));
    const LossScale scale = loss_scale(graph);
    const std::vector<Value> gradients = build_mean_gradients(graph, f);
    add_step(graph, f, gradients, setup_.options.optimizer, scale, rate_dtype());
    if (scale.present()) graph.output("outcome", guard_step(graph, gradients, scale, 0));
    return Program(setup_.need_context(), graph, options(run));
  });
}

Program Programs::frozen(const BatchType& batch) const {
  ProgramOptions chosen = options();
  chosen.freeze = true;
  return {setup_.need_context(), prediction(batch), chosen};
}

Program Programs::decoding(std::int64_t steps, std::int64_t capacity, const std::shared_ptr<ParameterStore>& states,
                           std::vector<layers::DecodingState>& out_states) const {
  Graph graph;
  setup_.expect_one_of_each("decoder");
  const Value x = graph.input("x", input_dtype(setup_.definition), {1, steps});
  layers::Decoding decoding{.capacity = capacity, .steps = graph.input("steps", DType::i64, {steps})};
  BuildOptions build_with = setup_.build_options();
  build_with.decoding = &decoding;
  const Forward f = build(graph, setup_.definition, x, {}, build_with);
  const Value logits = f.outputs[0].logits;
  const Shape scores = logits.shape();
  if (scores.rank() != 3 || is_floating(x.dtype())) {
    throw Error(fmt::format("expected a model that maps labels (batch, time) to scores (batch, time, classes), got {}{} to {}",
                            name_of(x.dtype()), x.shape().str(), scores.str()));
  }
  graph.output("scores", ops::reshape(ops::slice(logits, 1, steps - 1, steps), {scores[2]}));
  // Constants are packed once; parameters would be again after each step, since the graph updates some.
  graph = graph::freeze(std::move(graph), [&](const std::string& name) { return parameters_.store()->get(name).to_host(); });
  out_states = decoding.states;
  return {setup_.need_context(), graph, {.device = setup_.main_device(), .parameters = states}};
}

ProgramOptions Programs::options(const RunOptions& run) const {
  return {.device = setup_.main_device(), .parameters = parameters_.store(), .updates_last = true, .run = run};
}

Graph Programs::graph_of(Phase phase, const BatchType& batch, std::set<std::string>* out_fixed) const {
  Graph graph;
  if (computes_gradients(phase)) {
    std::set<std::string> fixed = add_training(graph, phase, batch);
    if (out_fixed != nullptr) *out_fixed = std::move(fixed);
    return graph;
  }
  const Forward f = add_forward(graph, batch, phase == Phase::forward_train);
  const bool one = f.outputs.size() == 1;
  if (phase == Phase::predict || phase == Phase::forward_train) {
    for (const ForwardOutput& of : f.outputs) graph.output(one ? "output" : of.name, of.output);
    update_finite_states(graph, f);
  } else if (phase == Phase::probabilities) {
    for (const ForwardOutput& of : f.outputs) {
      const auto loss = std::ranges::find_if(
          setup_.losses, [&](const OutputLoss& candidate) { return candidate.output.empty() || candidate.output == of.name; });
      graph.output(one ? "probabilities" : of.name, loss == setup_.losses.end() ? of.output : build_probabilities(of, loss->loss));
    }
  } else if (phase == Phase::classes) {
    const OutputLoss& loss = setup_.need_losses()[0];
    const auto [labels, predicted] = build_classes(output_of(f, loss.output), add_targets(graph, batch)[0], loss.loss);
    graph.output("expected", labels);
    graph.output("got", predicted);
  } else {
    const std::vector<Value> targets = add_targets(graph, batch);
    output_objective(graph, build_objective(f, targets, setup_.losses, add_sample_weights(graph, batch)));
  }
  return graph;
}

NamedValues Programs::add_inputs(Graph& graph, const BatchType& batch) const {
  NamedValues inputs;
  for (std::size_t i = 0; i < setup_.interface.inputs.size(); ++i) {
    const BatchType::Part& part = batch.inputs.at(i);
    inputs.emplace_back(setup_.interface.inputs[i].name, graph.input(setup_.input_name(i), part.dtype, part.shape));
  }
  return inputs;
}

std::vector<Value> Programs::add_targets(Graph& graph, const BatchType& batch) const {
  std::vector<Value> targets;
  for (std::size_t i = 0; i < setup_.need_losses().size(); ++i) {
    const BatchType::Part& part = batch.targets.at(i);
    targets.push_back(graph.input(setup_.target_name(i), part.dtype, part.shape));
  }
  return targets;
}

Forward Programs::add_forward(Graph& graph, const BatchType& batch, bool for_training) const {
  const NamedValues inputs = add_inputs(graph, batch);
  const Value key = for_training ? graph.input("key", DType::u64, {2}) : Value();
  return build(graph, setup_.definition, inputs, key, setup_.build_options());
}

std::set<std::string> Programs::add_training(Graph& graph, Phase phase, const BatchType& batch) const {
  const CompileOptions& options = setup_.options;
  LossScale scale;
  Gradients result;
  std::set<std::string> fixed;
  if (options.parallel_devices.size() > 1) {
    const NamedValues inputs = add_inputs(graph, batch);
    const Value key = graph.input("key", DType::u64, {2});
    const std::vector<Value> targets = add_targets(graph, batch);
    const Value weights = add_sample_weights(graph, batch);
    scale = loss_scale(graph);
    result = build_parallel(graph, setup_, inputs, key, targets, weights, scale);
  } else {
    result.forward = add_forward(graph, batch, true);
    const std::vector<Value> targets = add_targets(graph, batch);
    result.objective = build_objective(result.forward, targets, setup_.losses, add_sample_weights(graph, batch));
    fixed = names_of_frozen(result.forward);
    result.forward = without_frozen(std::move(result.forward));
    if (result.forward.parameters.empty()) throw Error("the model has no parameters to train");
    scale = loss_scale(graph);
    result.of = scaled_gradients(result.objective.loss, result.forward.parameters, scale);
  }
  const DeviceScope scope(graph, setup_.main_device());
  if (phase == Phase::train) {
    add_step(graph, result.forward, result.of, options.optimizer, scale, rate_dtype());
    update_states(graph, result.forward);
    const Value outcome = scale.present() ? guard_step(graph, result.of, scale, 0) : Value();
    output_objective(graph, result.objective);
    if (scale.present()) graph.output("outcome", outcome);
  } else {
    Value weight = result.objective.divisor;
    if (!weight.present()) weight = graph.constant(Tensor::full(setup_.definition.dtype, {}, static_cast<double>(batch.size())));
    build_accumulation(graph, result.forward, result.of, weight, phase == Phase::backward_first);
    update_finite_states(graph, result.forward);
    output_objective(graph, result.objective);
  }
  return fixed;
}

void Programs::update_finite_states(Graph& graph, const Forward& forward) const {
  const std::size_t first = graph.updates().size();
  update_states(graph, forward);
  if (!setup_.scales_loss() || graph.updates().size() == first) return;
  std::vector<Value> next;
  for (std::size_t i = first; i < graph.updates().size(); ++i) next.emplace_back(&graph, graph.updates()[i].value);
  graph::skip_updates(graph, first, any_not_finite(next));
}

LossScale Programs::loss_scale(Graph& graph) const {
  return setup_.scales_loss() ? add_loss_scale(graph) : LossScale{};
}

}  // namespace tenon::train
