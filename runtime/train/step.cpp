// Models: the programs behind a batch, and the calls that run one.
#include <fmt/core.h>

#include "graph/passes.h"
#include "train/model_state.h"

namespace tenon {
namespace {

/// What differs between programs of one model: what they do, and the shape of a batch.
std::string batch_key(Phase phase, const Shape& x, DType x_dtype, const Shape& y, DType y_dtype) {
  return fmt::format("{}|{}{}|{}{}", static_cast<int>(phase), name_of(x_dtype), x.str(), name_of(y_dtype), y.str());
}

/// A host tensor of any floating or integer scalar dtype, in reach of the host already on CPUs.
double scalar_of(const Tensor& t) {
  return t.on_host() ? t.item() : t.to_host().item();
}

Tensor scalar(DType dtype, double value) {
  return dtype == DType::f64 ? Tensor::scalar(value) : Tensor::scalar(static_cast<float>(value));
}

/// x without its batch axis, for a call that has not built the model yet.
Shape sample_of(const Tensor& x, const char* call) {
  if (x.shape().rank() == 0) throw Error(fmt::format("{}: x wants a batch axis, got a scalar", call));
  return Shape(x.shape().dims().subspan(1));
}

}  // namespace

// ---------------------------------------------------------------- programs

void Model::State::output_objective(Graph& graph, const train::Objective& objective) const {
  graph.output("loss", objective.loss);
  for (const auto& [name, value] : objective.metrics) graph.output(name, value);
  if (objective.weight.present()) graph.output("weight", objective.weight);
}

void Model::State::finish_training(Graph& graph, Phase phase, const train::Gradients& made, const train::LossScale& scale,
                                   std::int64_t batch) {
  const DeviceScope scope(graph, compiled.parallel_devices.empty() ? std::string() : compiled.parallel_devices[0]);
  if (phase == Phase::train) {
    make_optimizer_state();
    const Value rate_now = graph.input("learning_rate", DType::f64, {});
    const Value number = graph.input("step", DType::i64, {});
    train::build_step(graph, made.forward, made.of, compiled.optimizer, rate_now, train::step_to_take(number, scale));
    train::update_states(graph, made.forward);
    Value became;
    if (scale.present()) became = train::guard_step(graph, made.of, scale, 0);
    output_objective(graph, made.objective);
    if (scale.present()) graph.output("outcome", became);
  } else {
    make_gradients();
    Value weight = made.objective.weight;
    if (!weight.present()) weight = graph.constant(scalar(definition.dtype, static_cast<double>(batch)));
    train::build_accumulation(graph, made.forward, made.of, weight, phase == Phase::backward_first);
    update_finite_states(graph, made.forward);
    output_objective(graph, made.objective);
  }
}

/// What overflows where gradients would be scaled must not stay in running statistics.
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
    const train::Gradients made =
        train::build_parallel(graph, definition, compiled.loss, compiled.metrics, compiled.parallel_devices, in, key_in, target, scale);
    finish_training(graph, phase, made, scale, x[0]);
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
    const auto [wanted, got] = train::build_classes(f, target, compiled.loss);
    graph.output("wanted", wanted);
    graph.output("got", got);
    return graph;
  }
  const train::Objective objective = train::build_objective(f, target, compiled.loss, compiled.metrics);
  if (gradient) {
    if (f.parameters.empty()) throw Error("the model has no parameters: there is nothing to train");
    const train::LossScale scale = loss_scale(graph);
    const train::Gradients made{f, objective, train::scaled_gradients(objective.loss, f.parameters, scale)};
    finish_training(graph, phase, made, scale, x[0]);
    return graph;
  }
  output_objective(graph, objective);
  return graph;
}

Program& Model::State::program(Phase phase, const Shape& x, DType x_dtype, const Shape& y, DType y_dtype) {
  Recent& last = recent[static_cast<std::size_t>(phase)];
  if (last.program != nullptr && last.x == x && last.y == y && last.x_dtype == x_dtype && last.y_dtype == y_dtype) return *last.program;
  Program& found = programs.get(batch_key(phase, x, x_dtype, y, y_dtype), [&] {
    recent = {};  // the cache may drop any of them for the new one
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
    const Value number = graph.input("step", DType::i64, {});
    train::Forward f;
    f.specs = specs;
    for (const train::ParameterSpec& spec : specs) f.parameters.push_back(graph.parameter(spec.name, spec.dtype, spec.shape));
    const train::LossScale scale = loss_scale(graph);
    const std::vector<Value> mean_gradients = train::build_mean_gradients(graph, f);
    train::build_step(graph, f, mean_gradients, compiled.optimizer, rate_now, train::step_to_take(number, scale));
    if (scale.present()) graph.output("outcome", train::guard_step(graph, mean_gradients, scale, 0));
    return Program(*context, graph, {.device = main_device(), .parameters = parameters});
  });
}

void Model::State::set_step_inputs() {
  const std::int64_t next = step + 1;
  // Batches of one step differ in the upper bits, so that each gets dropout masks of its own.
  key.data<std::uint64_t>()[1] = static_cast<std::uint64_t>(next) | static_cast<std::uint64_t>(waiting) << 40;
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
                          "that was taken; take precision: mixed_bfloat16 or float32, try a smaller learning rate than {}, or find the "
                          "first op with check_numerics: all",
                          step, train::lowest_loss_scale, *learning_rate.data<double>()));
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
  Program& program = s.program(s.waiting == 0 ? Phase::backward_first : Phase::backward_more, x, &y);
  s.set_step_inputs();
  const std::array<Tensor, 3> inputs{x, s.key, y};
  const std::vector<Tensor>& results = program.run(inputs);
  ++s.waiting;
  return s.read(results, x.shape()[0]);
}

void Model::apply() {
  State& s = *state_;
  if (s.waiting == 0) throw Error("apply: there are no gradients; backward() makes them");
  Program& program = s.apply_program();
  s.set_step_inputs();
  const std::array<Tensor, 2> inputs{s.learning_rate, s.step_number};
  const std::vector<Tensor>& results = program.run(inputs);
  s.waiting = 0;
  s.finish_step(results);
}

const Logs& Model::train_batch(const Tensor& x, const Tensor& y) {
  State& s = *state_;
  s.need_context();
  if (!s.sample) build(sample_of(x, "train_batch"));
  if (s.waiting != 0) throw Error(fmt::format("train_batch: {} gradients wait for apply()", s.waiting));
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
  if (s.waiting == 0) throw Error("gradient: there are none; backward() makes them");
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
