// SPDX-License-Identifier: Apache-2.0
// Model: the programs of a batch and the functions that run them.
#include <fmt/core.h>

#include "graph/passes.h"
#include "train/model_state.h"

namespace tenon {
namespace {

/// The key of a program: its phase and the shapes and dtypes of the batch.
std::string batch_key(Phase phase, const Shape& x, DType x_dtype, const Shape& y, DType y_dtype) {
  return fmt::format("{}|{}{}|{}{}", static_cast<int>(phase), name_of(x_dtype), x.str(), name_of(y_dtype), y.str());
}

/// The value of a scalar tensor, without a copy if it is in host memory.
double scalar_of(const Tensor& t) {
  return t.on_host() ? t.item() : t.to_host().item();
}

Tensor scalar(DType dtype, double value) {
  return dtype == DType::f64 ? Tensor::scalar(value) : Tensor::scalar(static_cast<float>(value));
}

/// The shape of x without its batch axis.
Shape sample_of(const Tensor& x, const char* call) {
  if (x.shape().rank() == 0) throw Error(fmt::format("{}: x expects a batch axis, got a scalar", call));
  return Shape(x.shape().dims().subspan(1));
}

}  // namespace

// ---------------------------------------------------------------- programs

void Model::State::output_objective(Graph& graph, const train::Objective& objective) const {
  graph.output("loss", objective.loss);
  for (const auto& [name, value] : objective.metrics) graph.output(name, value);
  if (objective.weight.present()) graph.output("weight", objective.weight);
}

void Model::State::finish_training(Graph& graph, Phase phase, const train::Gradients& result, const train::LossScale& scale,
                                   std::int64_t batch) {
  const DeviceScope scope(graph, compiled.parallel_devices.empty() ? std::string() : compiled.parallel_devices[0]);
  if (phase == Phase::train) {
    make_optimizer_state();
    const Value rate_now = graph.input("learning_rate", DType::f64, {});
    const Value index = graph.input("step", DType::i64, {});
    train::build_step(graph, result.forward, result.of, compiled.optimizer, rate_now, train::step_to_take(index, scale));
    train::update_states(graph, result.forward);
    Value outcome_now;
    if (scale.present()) outcome_now = train::guard_step(graph, result.of, scale, 0);
    output_objective(graph, result.objective);
    if (scale.present()) graph.output("outcome", outcome_now);
  } else {
    make_gradients();
    Value weight = result.objective.weight;
    if (!weight.present()) weight = graph.constant(scalar(definition.dtype, static_cast<double>(batch)));
    train::build_accumulation(graph, result.forward, result.of, weight, phase == Phase::backward_first);
    update_finite_states(graph, result.forward);
    output_objective(graph, result.objective);
  }
}

/// With loss scaling, keeps overflowed values out of running statistics.
void Model::State::update_finite_states(Graph& graph, const train::Forward& f) {
  const std::size_t first = graph.updates().size();
  train::update_states(graph, f);
  if (!scales_loss() || graph.updates().size() == first) return;
  std::vector<Value> next;
  for (std::size_t i = first; i < graph.updates().size(); ++i) next.emplace_back(&graph, graph.updates()[i].value);
  graph::skip_updates(graph, first, train::any_not_finite(next));
}

train::LossScale Model::State::loss_scale(Graph& graph) {
  return scales_loss() ? train::add_loss_scale(graph) : train::LossScale{};
}

Graph Model::State::graph_of(Phase phase, const Shape& x, DType x_dtype, const Shape& y, DType y_dtype) {
  const bool gradient = phase == Phase::train || phase == Phase::backward_first || phase == Phase::backward_more;
  Graph graph;
  if (gradient && compiled.parallel_devices.size() > 1) {
    const Value in = graph.input("x", x_dtype, x);
    const Value key_in = graph.input("key", DType::u64, {2});
    const Value target = graph.input("y", y_dtype, y);
    const train::LossScale scale = loss_scale(graph);
    const train::Gradients result =
        train::build_parallel(graph, definition, compiled.loss, compiled.metrics, compiled.parallel_devices, in, key_in, target, scale);
    finish_training(graph, phase, result, scale, x[0]);
    return graph;
  }
  const train::Forward f = forward(graph, x, x_dtype, gradient || phase == Phase::forward_train);
  if (phase == Phase::predict || phase == Phase::forward_train) {
    graph.output("output", f.output);
    update_finite_states(graph, f);
    return graph;
  }
  const Value target = graph.input("y", y_dtype, y);
  if (phase == Phase::classes) {
    const auto [labels, predicted] = train::build_classes(f, target, compiled.loss);
    graph.output("expected", labels);
    graph.output("got", predicted);
    return graph;
  }
  const train::Objective objective = train::build_objective(f, target, compiled.loss, compiled.metrics);
  if (gradient) {
    if (f.parameters.empty()) throw Error("the model has no parameters to train");
    const train::LossScale scale = loss_scale(graph);
    const train::Gradients result{f, objective, train::scaled_gradients(objective.loss, f.parameters, scale)};
    finish_training(graph, phase, result, scale, x[0]);
    return graph;
  }
  output_objective(graph, objective);
  return graph;
}

Program& Model::State::program(Phase phase, const Shape& x, DType x_dtype, const Shape& y, DType y_dtype) {
  Recent& last = recent[static_cast<std::size_t>(phase)];
  if (last.program != nullptr && last.x == x && last.y == y && last.x_dtype == x_dtype && last.y_dtype == y_dtype) return *last.program;
  Program& found = programs.get(batch_key(phase, x, x_dtype, y, y_dtype), [&] {
    recent = {};  // the cache may evict any of them
    return Program(*context, graph_of(phase, x, x_dtype, y, y_dtype), {.device = main_device(), .parameters = parameters});
  });
  last = {&found, x, y, x_dtype, y_dtype};
  return found;
}

Program& Model::State::program(Phase phase, const Tensor& x, const Tensor* y) {
  return y == nullptr ? program(phase, x.shape(), x.dtype(), {}, DType::none)
                      : program(phase, x.shape(), x.dtype(), y->shape(), y->dtype());
}

Program& Model::State::apply_program() {
  return programs.get("apply", [&] {
    recent = {};
    make_optimizer_state();
    Graph graph;
    const Value rate_now = graph.input("learning_rate", DType::f64, {});
    const Value index = graph.input("step", DType::i64, {});
    train::Forward f;
    f.specs = specs;
    for (const train::ParameterSpec& spec : specs) f.parameters.push_back(graph.parameter(spec.name, spec.dtype, spec.shape));
    const train::LossScale scale = loss_scale(graph);
    const std::vector<Value> mean_gradients = train::build_mean_gradients(graph, f);
    train::build_step(graph, f, mean_gradients, compiled.optimizer, rate_now, train::step_to_take(index, scale));
    if (scale.present()) graph.output("outcome", train::guard_step(graph, mean_gradients, scale, 0));
    return Program(*context, graph, {.device = main_device(), .parameters = parameters});
  });
}

void Model::State::set_step_inputs() {
  const std::int64_t next = step + 1;
  // Batches of one step differ in the upper bits, so that each has its own dropout masks.
  key.data<std::uint64_t>()[1] = static_cast<std::uint64_t>(next) | static_cast<std::uint64_t>(accumulated_batches) << 40;
  *learning_rate.data<double>() = next_rate();
  *step_number.data<std::int64_t>() = next;
}

void Model::State::finish_step(const std::vector<Tensor>& results) {
  ++step;
  if (!scales_loss()) return;
  outcome = static_cast<train::StepOutcome>(static_cast<int>(scalar_of(results.back())));
  if (outcome != train::StepOutcome::exhausted) return;
  throw Error(Status::internal,
              fmt::format("step {}: gradients are not finite even with the smallest loss scale, {}; the weights are those of the last step "
                          "that was taken; use precision: mixed_bfloat16 or float32, try a smaller learning rate than {}, or find the "
                          "first op with check_numerics: all",
                          step, train::min_loss_scale, *learning_rate.data<double>()));
}

const Logs& Model::State::read(std::span<const Tensor> results, std::int64_t samples) {
  for (std::size_t i = 0; i < batch_logs.size(); ++i) batch_means[i] = scalar_of(results[i]);
  batch_weight = results.size() > batch_logs.size() ? scalar_of(results.back()) : static_cast<double>(samples);
  finish(batch_means, batch_logs);
  return batch_logs;
}

void Model::State::finish(const std::vector<double>& from, Logs& out_logs) const {
  out_logs[0].second = from[0];
  for (std::size_t i = 1; i < out_logs.size(); ++i) {
    const auto rule = train::rule_of(compiled.metrics[i - 1].metric).finish;
    out_logs[i].second = rule == nullptr ? from[i] : rule(from[i]);
  }
}

// ---------------------------------------------------------------- one batch

Tensor Model::forward(const Tensor& x) {
  State& s = *state_;
  s.need_context();
  if (!s.sample) build(sample_of(x, "forward"));
  if (!s.training) {
    const std::array<Tensor, 1> inputs{x};
    return s.program(Phase::predict, x, nullptr).run(inputs).front().to_host();
  }
  s.set_step_inputs();
  const std::array<Tensor, 2> inputs{x, s.key};
  return s.program(Phase::forward_train, x, nullptr).run(inputs).front().to_host();
}

const Logs& Model::backward(const Tensor& x, const Tensor& y) {
  State& s = *state_;
  s.need_context();
  if (!s.sample) build(sample_of(x, "backward"));
  Program& program = s.program(s.accumulated_batches == 0 ? Phase::backward_first : Phase::backward_more, x, &y);
  s.set_step_inputs();
  const std::array<Tensor, 3> inputs{x, s.key, y};
  const std::vector<Tensor>& results = program.run(inputs);
  ++s.accumulated_batches;
  return s.read(results, x.shape()[0]);
}

void Model::apply() {
  State& s = *state_;
  if (s.accumulated_batches == 0) throw Error("apply: there are no gradients; call backward() first");
  Program& program = s.apply_program();
  s.set_step_inputs();
  const std::array<Tensor, 2> inputs{s.learning_rate, s.step_number};
  const std::vector<Tensor>& results = program.run(inputs);
  s.accumulated_batches = 0;
  s.finish_step(results);
}

const Logs& Model::train_batch(const Tensor& x, const Tensor& y) {
  State& s = *state_;
  s.need_context();
  if (!s.sample) build(sample_of(x, "train_batch"));
  if (s.accumulated_batches != 0)
    throw Error(fmt::format("train_batch: gradients of {} batches are accumulated; call apply() first", s.accumulated_batches));
  Program& program = s.program(Phase::train, x, &y);
  s.set_step_inputs();
  const std::array<Tensor, 5> inputs{x, s.key, y, s.learning_rate, s.step_number};
  const std::vector<Tensor>& results = program.run(inputs);
  s.finish_step(results);
  return s.read(std::span(results).first(results.size() - (s.scales_loss() ? 1 : 0)), x.shape()[0]);
}

const Logs& Model::test_batch(const Tensor& x, const Tensor& y) {
  State& s = *state_;
  s.need_context();
  if (!s.sample) build(sample_of(x, "test_batch"));
  const std::array<Tensor, 2> inputs{x, y};
  return s.read(s.program(Phase::evaluate, x, &y).run(inputs), x.shape()[0]);
}

Tensor Model::gradient(const std::string& parameter) const {
  const State& s = *state_;
  if (s.accumulated_batches == 0) throw Error("gradient: there are no gradients; call backward() first");
  for (const train::ParameterSpec& spec : s.specs) {
    if (spec.name != parameter) continue;
    Tensor sum = s.parameters->get(train::gradient_name(spec)).to_host();
    const double weight = scalar_of(s.parameters->get(train::gradient_weight_name));
    const auto divide = [&](auto* values) {
      using Number = std::remove_pointer_t<decltype(values)>;
      for (std::int64_t i = 0; i < sum.count(); ++i) values[i] = static_cast<Number>(values[i] / weight);
    };
    if (spec.dtype == DType::f64) {
      divide(sum.data<double>());
    } else {
      divide(sum.data<float>());
    }
    return sum;
  }
  throw Error(fmt::format("gradient: there is no parameter '{}'", parameter));
}

}  // namespace tenon
