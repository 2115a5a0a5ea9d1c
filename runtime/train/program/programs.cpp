// SPDX-License-Identifier: Apache-2.0
#include "train/program/programs.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes.h"
#include "layers/definition.h"
#include "train/program/trainable.h"

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

/// Errors  a layer with a device of its own, which data parallelism has no place for.
void expect_no_devices(const ModelDefinition& definition) {
  layers::for_each_layer(definition.layers, [](const LayerDefinition& layer) {
    if (!layer.device.empty())
      layer.fail(fmt::format(
          "has its own device '{}', which is not supported with data parallelism over several devices; remove the device", layer.device));
  });
}

/// Absent without sample weights.
Value add_sample_weights(Graph& graph, const BatchType& batch) {
  return batch.weights.dtype == DType::none ? Value() : graph.input("sample_weights", batch.weights.dtype, batch.weights.shape);
}

}  // namespace

RankBatch::RankBatch(const BatchTensors& whole, const BatchPart& part) : share_(part.share) {
  const auto rows = [&](const Tensor& tensor) { return tensor.narrow(0, part.begin, part.size()); };
  for (const Tensor& tensor : whole.inputs) inputs_.push_back(rows(tensor));
  for (const Tensor& tensor : whole.targets) targets_.push_back(rows(tensor));
  if (whole.sample_weights.defined()) weights_ = rows(whole.sample_weights);
}

void BatchType::assign(const BatchTensors& batch) {
  const auto take = [](std::vector<Part>& parts, std::span<const Tensor> tensors) {
    parts.clear();
    for (const Tensor& tensor : tensors) parts.push_back({tensor.dtype(), tensor.shape()});
  };
  share = batch.share;
  take(inputs, batch.inputs);
  take(targets, batch.targets);
  weights = batch.sample_weights.defined() ? Part{batch.sample_weights.dtype(), batch.sample_weights.shape()} : Part{};
}

BatchType BatchType::part_of(const ModelSetup& setup) const {
  if (!setup.shares_batches()) return *this;
  const BatchPart part = setup.part(size());
  BatchType own = *this;
  own.share = part.share;
  const auto cut = [&](Part& of) {
    if (of.shape.rank() > 0) of.shape = Shape(of.shape.dims().subspan(1)).with_batch(part.size());
  };
  for (auto* parts : {&own.inputs, &own.targets}) std::ranges::for_each(*parts, cut);
  cut(own.weights);
  return own;
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
  key_.add(batch.share.counted);
  key_.add(batch.share.whole);
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
  if (!computes_gradients(phase) || !setup_.shares_batches()) {
    ProgramOptions chosen = options();
    const Graph graph = graph_of(phase, batch, &chosen.fixed);
    return Program::plan_memory(setup_.need_context(), graph, chosen);
  }
  std::vector<MemoryPlan> plans;
  for (int device = 0; device < setup_.device_count(); ++device) {
    const ModelSetup setup = setup_.for_device(device);
    Programs of_rank(setup, parameters_);
    of_rank.clear();
    ProgramOptions chosen = of_rank.options();
    if (device != setup_.device_index) chosen.parameters = nullptr;  // it has its own
    const Graph graph = of_rank.graph_of(phase, batch.part_of(setup), &chosen.fixed);
    for (MemoryPlan& plan : Program::plan_memory(setup.need_context(), graph, chosen)) plans.push_back(std::move(plan));
  }
  return plans;
}

Program& Programs::apply(const RunOptions& run) {
  return cache_.get("apply", [&] {
    parameters_.make_optimizer_state();
    Graph graph;
    Forward f;
    f.specs = parameters_.learned();
    for (const ParameterSpec& spec : f.specs) f.parameters.push_back(graph.parameter(spec.name, spec.dtype, spec.shape));
    const LossScale scale = loss_scale(graph);
    const auto over_ranks = [&](const std::vector<Value>& sums) {
      return communicator_ == nullptr ? sums : sum_over_ranks(sums, bucket_size_bytes());
    };
    const std::vector<Value> gradients = build_mean_gradients(graph, f, over_ranks);
    if (const Value outcome = add_step(graph, f, gradients, scale); outcome.present()) graph.output("outcome", outcome);
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
  return {
      .device = setup_.main_device(), .parameters = parameters_.store(), .updates_last = true, .communicator = communicator_, .run = run};
}

std::uint64_t Programs::bucket_size_bytes() const {
  const std::optional<double>& chosen = setup_.options.parallel.bucket_mb;
  if (chosen) return static_cast<std::uint64_t>(*chosen * 0x1p20);
  const std::uint64_t size_bytes = communicator_->bucket_size_bytes();
  // GPUs have a wire between them, too.
  return size_bytes == 0 && !setup_.device().state()->host_addressable() ? LinkOptions().bucket_size_bytes : size_bytes;
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

Forward Programs::add_forward(Graph& graph, const BatchType& batch, bool for_training, bool sync_batch_norm) const {
  const NamedValues inputs = add_inputs(graph, batch);
  const Value key = for_training ? graph.input("key", DType::u64, {2}) : Value();
  BuildOptions options = setup_.build_options();
  if (sync_batch_norm) options.sync_batch_norm = batch.share;
  return build(graph, setup_.placed_definition(), inputs, key, options);
}

std::set<std::string> Programs::add_training(Graph& graph, Phase phase, const BatchType& batch) const {
  const bool is_shared = batch.share.whole > 0;
  if (is_shared) expect_no_devices(setup_.definition);
  Forward forward = add_forward(graph, batch, true, is_shared && setup_.options.parallel.sync_batch_norm);
  const std::vector<Value> targets = add_targets(graph, batch);
  Objective objective = build_objective(forward, targets, setup_.losses, add_sample_weights(graph, batch));
  const std::set<std::string> fixed = names_of_frozen(forward);
  forward = without_frozen(std::move(forward));
  if (forward.parameters.empty()) throw Error("the model has no parameters to train");
  const LossScale scale = loss_scale(graph);
  Gradients gradients;
  if (is_shared) {
    gradients = build_rank_gradients(graph, batch.share, forward, objective, scale, phase == Phase::train, bucket_size_bytes());
  } else {
    gradients.of = scaled_gradients(objective.loss, forward.parameters, scale);
    gradients.weight = objective.divisor;
    if (!gradients.weight.present())
      gradients.weight = graph.constant(Tensor::full(setup_.definition.dtype, {}, static_cast<double>(batch.size())));
  }
  const DeviceScope scope(graph, setup_.loss_device());
  if (phase == Phase::train) {
    const Value outcome = add_step(graph, forward, gradients.of, scale);
    output_objective(graph, objective);
    if (outcome.present()) graph.output("outcome", outcome);
  } else {
    build_accumulation(graph, forward, gradients.of, gradients.weight, phase == Phase::backward_first);
    update_finite_states(graph, forward);
    output_objective(graph, objective);
  }
  return fixed;
}

Value Programs::add_step(Graph& graph, const Forward& forward, const std::vector<Value>& gradients, const LossScale& scale) const {
  const Shards shards = setup_.shards_of(forward.specs);
  const Value rate = graph.input("learning_rate", rate_dtype(), {});
  const Value step = graph.input("step", DType::i64, {});
  build_step(graph, forward, gradients, setup_.options.optimizer, rate, step_to_take(step, scale), shards);
  update_states(graph, forward);
  const Value outcome = scale.present() ? guard_step(graph, gradients, scale, 0) : Value();
  broadcast_updates(graph, forward, shards);
  return outcome;
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
