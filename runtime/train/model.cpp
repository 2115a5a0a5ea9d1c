#include <tenon/model.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/log.h"
#include "exec/context_state.h"
#include "train/builder.h"
#include "train/initializers.h"
#include "train/model_state.h"
#include "train/summary.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

/// What differs between programs of one model: the shape of a batch.
std::string batch_key(const char* phase, const Shape& x, DType x_dtype, const Shape* y, DType y_dtype) {
  return fmt::format("{}|{}{}|{}{}", phase, name_of(x_dtype), x.str(), name_of(y_dtype), y != nullptr ? y->str() : "");
}

Shape with_batch(std::int64_t batch, const Shape& sample) {
  Shape shape{batch};
  for (const std::int64_t d : sample) shape.push_back(d);
  return shape;
}

/// A host tensor of any floating or integer scalar dtype, in reach of the host already on CPUs.
double scalar_of(const Tensor& t) {
  return t.on_host() ? t.item() : t.to_host().item();
}

/// Means over batches of different sizes.
struct RunningMeans {
  std::vector<double> sums;
  double weight = 0;

  void reset(std::size_t count) {
    sums.assign(count, 0);
    weight = 0;
  }
  void add(const Logs& logs, double samples) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += logs[i].second * samples;
    weight += samples;
  }
  void write(Logs& out) const {
    for (std::size_t i = 0; i < sums.size(); ++i) out[i].second = weight > 0 ? sums[i] / weight : 0;
  }
};

}  // namespace

// ---------------------------------------------------------------- construction

Model::Model(ModelDefinition definition) : state_(std::make_unique<State>()) {
  if (definition.layers.empty()) throw Error("model: there are no layers");
  state_->definition = std::move(definition);
  state_->parameters = std::make_shared<ParameterStore>();
}
Model::Model(std::vector<LayerDefinition> layers)
    : Model([&] {
        ModelDefinition definition;
        definition.layers = std::move(layers);
        return definition;
      }()) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

const Context& Model::State::need_context() const {
  if (!context) throw Error("model: compile() comes first: it says which context, optimizer and loss to use");
  return *context;
}

void Model::compile(const Context& context, CompileOptions options) {
  State& s = *state_;
  s.context = context;
  s.compiled = std::move(options);
  s.programs = exec::ProgramCache(16);
  s.last_train = nullptr;
  s.batch_logs.assign(1, {"loss", 0.0});
  for (const Metric metric : s.compiled.metrics) s.batch_logs.emplace_back(name_of(metric), 0.0);
  const std::uint64_t seed = context.config().seed;
  s.key.data<std::uint64_t>()[0] = seed;
  if (s.sample) s.make_state();
  if (!s.sample && s.definition.input_shape) build(Shape(std::span<const std::int64_t>(*s.definition.input_shape)));
}

train::Forward Model::State::forward(Graph& graph, const Shape& x_shape, DType x_dtype, bool training) const {
  const Value x = graph.input("x", x_dtype, x_shape);
  Value k;
  if (training) k = graph.input("key", DType::u64, {2});
  return train::build(graph, definition, x, k);
}

void Model::build(const Shape& sample) {
  State& s = *state_;
  const Context& context = s.need_context();
  if (s.sample) {
    if (!(*s.sample == sample)) throw Error(fmt::format("model: built for samples {}, got {}", s.sample->str(), sample.str()));
    return;
  }
  Graph graph;
  const train::Forward forward = s.forward(graph, with_batch(1, sample), s.definition.input_dtype, false);
  const Device device = context.default_device();
  for (std::size_t i = 0; i < forward.specs.size(); ++i) {
    const train::ParameterSpec& spec = forward.specs[i];
    const Device home = spec.device.empty() ? device : context.device(spec.device);
    s.parameters->create(spec.name, home, spec.dtype, spec.shape);
    s.parameters->set(spec.name, train::initialize(context, home, spec.initializer, spec.dtype, spec.shape, spec.fan_in,
                                                   context.config().seed, static_cast<std::uint32_t>(i)));
  }
  s.specs = forward.specs;
  s.layers = forward.layers;
  s.sample = sample;
  s.make_state();
}

void Model::State::make_state() {
  const Device device = context->default_device();
  for (const train::ParameterSpec& spec : specs) {
    const Device home = spec.device.empty() ? device : context->device(spec.device);
    for (const std::string& suffix : train::state_names(compiled.optimizer)) {
      const std::string name = fmt::format("optimizer/{}/{}", spec.name, suffix);
      if (parameters->has(name)) continue;
      parameters->create(name, home, spec.dtype, spec.shape);
      parameters->set(name, Tensor::zeros(spec.dtype, spec.shape));
    }
  }
}

// ---------------------------------------------------------------- programs

Program& Model::State::train_program(const Shape& x, DType x_dtype, const Shape& y, DType y_dtype) {
  return programs.get(batch_key("train", x, x_dtype, &y, y_dtype), [&] {
    Graph graph;
    const train::Forward f = forward(graph, x, x_dtype, true);
    const Value target = graph.input("y", y_dtype, y);
    const Value rate = graph.input("learning_rate", DType::f64, {});
    const Value number = graph.input("step", DType::i64, {});
    const train::Objective objective = train::build_objective(f, target, compiled.loss, compiled.metrics);
    train::build_update(graph, objective, f, compiled.optimizer, rate, number);
    graph.output("loss", objective.loss);
    for (const auto& [name, value] : objective.metrics) graph.output(name, value);
    return Program(*context, graph, {.device = {}, .parameters = parameters});
  });
}

Program& Model::State::evaluate_program(const Shape& x, DType x_dtype, const Shape& y, DType y_dtype) {
  last_train = nullptr;  // the cache may drop it
  return programs.get(batch_key("evaluate", x, x_dtype, &y, y_dtype), [&] {
    Graph graph;
    const train::Forward f = forward(graph, x, x_dtype, false);
    const Value target = graph.input("y", y_dtype, y);
    const train::Objective objective = train::build_objective(f, target, compiled.loss, compiled.metrics);
    graph.output("loss", objective.loss);
    for (const auto& [name, value] : objective.metrics) graph.output(name, value);
    return Program(*context, graph, {.device = {}, .parameters = parameters});
  });
}

Program& Model::State::predict_program(const Shape& x, DType x_dtype) {
  last_train = nullptr;
  return programs.get(batch_key("predict", x, x_dtype, nullptr, DType::none), [&] {
    Graph graph;
    const train::Forward f = forward(graph, x, x_dtype, false);
    graph.output("output", f.output);
    return Program(*context, graph, {.device = {}, .parameters = parameters});
  });
}

// ---------------------------------------------------------------- training

const Logs& Model::train_batch(const Tensor& x, const Tensor& y) {
  State& s = *state_;
  if (!s.sample) build(Shape(x.shape().dims().subspan(1)));
  // The usual case is the same batch shape again: found without building a key, so that a step allocates nothing.
  if (s.last_train == nullptr || !(s.last_x == x.shape()) || !(s.last_y == y.shape()) || s.last_x_dtype != x.dtype() ||
      s.last_y_dtype != y.dtype()) {
    s.last_train = &s.train_program(x.shape(), x.dtype(), y.shape(), y.dtype());
    s.last_x = x.shape(), s.last_y = y.shape();
    s.last_x_dtype = x.dtype(), s.last_y_dtype = y.dtype();
  }
  Program& program = *s.last_train;
  const std::int64_t step = s.step + 1;
  s.key.data<std::uint64_t>()[1] = static_cast<std::uint64_t>(step);
  *s.learning_rate.data<double>() = s.compiled.optimizer.learning_rate;
  *s.step_number.data<std::int64_t>() = step;
  const std::array<Tensor, 5> inputs{x, s.key, y, s.learning_rate, s.step_number};
  const std::vector<Tensor>& results = program.run(inputs);
  s.step = step;
  for (std::size_t i = 0; i < results.size(); ++i) s.batch_logs[i].second = scalar_of(results[i]);
  return s.batch_logs;
}

History Model::fit(const std::shared_ptr<const Dataset>& data, const FitOptions& options) {
  State& s = *state_;
  const Context& context = s.need_context();
  if (options.epochs < 0) throw Error(fmt::format("fit: epochs is {}, wanted 0 or more", options.epochs));
  build(data->x_type().shape);
  BatchOptions batch_options;
  batch_options.batch_size = options.batch_size;
  batch_options.shuffle = options.shuffle;
  batch_options.seed = context.config().seed;
  batch_options.workers = options.workers;
  Batches batches(data, batch_options);
  const std::int64_t count = options.steps_per_epoch > 0 ? std::min(options.steps_per_epoch, batches.count()) : batches.count();
  for (Callback* callback : options.callbacks) callback->train_begin(options.epochs, count);

  History history;
  RunningMeans means;
  Logs running = s.batch_logs;
  for (std::int64_t epoch = s.epochs_done; epoch < options.epochs; ++epoch) {
    for (Callback* callback : options.callbacks) callback->epoch_begin(epoch);
    EpochLogs result;
    result.epoch = epoch;
    means.reset(s.batch_logs.size());
    const auto begin = Clock::now();
    batches.start(static_cast<std::uint64_t>(epoch));
    for (std::int64_t number = 0; number < count; ++number) {
      const Batch* batch = batches.next();
      if (batch == nullptr) break;
      const Logs& logs = train_batch(batch->x, batch->y);
      if (!std::isfinite(logs[0].second)) {
        throw Error(
            Status::internal,
            fmt::format("the loss is {} at epoch {}, step {} (batch {} of {}); try a smaller learning rate than {}, or find the first op "
                        "with check_numerics: all",
                        logs[0].second, epoch + 1, s.step, number + 1, count, s.compiled.optimizer.learning_rate));
      }
      const std::int64_t samples = batch->x.shape()[0];
      result.samples += samples;
      means.add(logs, static_cast<double>(samples));
      means.write(running);
      for (Callback* callback : options.callbacks) callback->batch_end(number, running);
    }
    result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    result.logs = running;
    if (options.validation != nullptr) {
      for (const auto& [name, value] : evaluate(options.validation, options.batch_size)) result.logs.emplace_back("val_" + name, value);
    }
    s.epochs_done = epoch + 1;
    for (Callback* callback : options.callbacks) callback->epoch_end(result);
    history.push_back(std::move(result));
  }
  for (Callback* callback : options.callbacks) callback->train_end();
  return history;
}

Logs Model::evaluate(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size) {
  State& s = *state_;
  s.need_context();
  build(data->x_type().shape);
  Batches batches(data, {.batch_size = batch_size, .shuffle = false});
  RunningMeans means;
  Logs logs = s.batch_logs;
  means.reset(logs.size());
  batches.start(0);
  while (const Batch* batch = batches.next()) {
    Program& program = s.evaluate_program(batch->x.shape(), batch->x.dtype(), batch->y.shape(), batch->y.dtype());
    const std::array<Tensor, 2> inputs{batch->x, batch->y};
    const std::vector<Tensor>& results = program.run(inputs);
    for (std::size_t i = 0; i < results.size(); ++i) logs[i].second = scalar_of(results[i]);
    means.add(logs, static_cast<double>(batch->x.shape()[0]));
  }
  means.write(logs);
  return logs;
}

Tensor Model::predict(const Tensor& x, std::int64_t batch_size) {
  State& s = *state_;
  s.need_context();
  if (x.shape().rank() == 0) throw Error("predict: x wants a batch axis, got a scalar");
  if (batch_size < 1) throw Error(fmt::format("predict: batch_size is {}, wanted at least 1", batch_size));
  build(Shape(x.shape().dims().subspan(1)));
  const std::int64_t count = x.shape()[0];
  Tensor all;
  for (std::int64_t begin = 0; begin < count || !all.defined(); begin += batch_size) {
    const Tensor part = x.slice(0, begin, std::min(count, begin + batch_size));
    const std::array<Tensor, 1> inputs{part};
    const Tensor made = s.predict_program(part.shape(), part.dtype()).run(inputs).front().to_host();
    if (!all.defined()) {
      Shape shape = made.shape();
      shape.set(0, count);
      all = Tensor::empty(made.dtype(), shape);
    }
    if (made.size_bytes() > 0) {
      std::memcpy(static_cast<char*>(all.raw()) + begin * (made.size_bytes() / made.shape()[0]), made.raw(),
                  static_cast<std::size_t>(made.size_bytes()));
    }
  }
  return all;
}

// ---------------------------------------------------------------- looking at it

std::int64_t Model::step() const {
  return state_->step;
}
std::int64_t Model::epochs_done() const {
  return state_->epochs_done;
}
const ModelDefinition& Model::definition() const {
  return state_->definition;
}
ParameterStore& Model::parameters() {
  return *state_->parameters;
}

std::vector<LayerSummary> Model::layers() const {
  if (!state_->sample) throw Error("model: the shape of a sample is not known yet; give `input: {shape: ...}`, or build() it");
  return state_->layers;
}

std::string Model::summary() const {
  const State& s = *state_;
  const std::vector<LayerSummary> rows = layers();
  std::int64_t weights = 0;
  for (const LayerSummary& row : rows) weights += row.parameters;
  const auto states = static_cast<std::int64_t>(train::state_names(s.compiled.optimizer).size());
  return train::summary_table(s.definition.name, rows, s.definition.dtype, weights * states, s.need_context().default_device().name());
}

PlacementReport Model::explain(std::int64_t batch_size) {
  State& s = *state_;
  s.need_context();
  if (!s.sample) throw Error("model: the shape of a sample is not known yet; give `input: {shape: ...}`, or build() it");
  const Shape x = with_batch(batch_size, *s.sample);
  Graph graph;
  const train::Forward f = s.forward(graph, x, s.definition.input_dtype, false);
  const bool labels = s.compiled.loss.loss == Loss::sparse_categorical_crossentropy;
  return s.train_program(x, s.definition.input_dtype, labels ? Shape{batch_size} : f.output.shape(), labels ? DType::i64 : DType::f32)
      .placement();
}

}  // namespace tenon
