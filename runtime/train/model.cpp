// SPDX-License-Identifier: Apache-2.0
// Model: construction, parameters, introspection.
#include <tenon/model.h>

#include <fmt/core.h>

#include "train/builder.h"
#include "train/initializers.h"
#include "train/model_state.h"
#include "train/optimizers.h"
#include "train/summary.h"

namespace tenon {
namespace {

Shape with_batch(std::int64_t batch, const Shape& sample) {
  Shape shape{batch};
  for (const std::int64_t d : sample) shape.push_back(d);
  return shape;
}

}  // namespace

// ---------------------------------------------------------------- construction

Model::Model(ModelDefinition definition) : state_(std::make_unique<State>()) {
  if (definition.layers.empty()) throw Error("model: expected at least one layer, got none");
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
  if (!context) throw Error("model: call compile() first: it sets the context, the optimizer and the loss");
  return *context;
}

void Model::compile(const Context& context, CompileOptions options) {
  State& s = *state_;
  for (const std::string& device : options.parallel_devices) static_cast<void>(context.device(device));  // report a missing device now
  const Config& config = context.config();
  const bool mixed = config.precision == Precision::mixed_bfloat16 || config.precision == Precision::mixed_float16;
  if (mixed && s.definition.dtype != DType::f32) {
    throw Error(fmt::format("model: precision {} ({}) expects parameters of f32, got {}; use dtype: float32 or precision: float32",
                            name_of(config.precision), config.origin_of("precision"), name_of(s.definition.dtype)));
  }
  s.context = context;
  s.outcome = train::StepOutcome::taken;
  s.compiled = std::move(options);
  s.programs = exec::ProgramCache(State::max_programs);
  s.recent = {};
  s.training_buffers = s.evaluation_buffers = {};
  s.accumulated_batches = 0;
  s.batch_logs.assign(1, {"loss", 0.0});
  for (const MetricDefinition& metric : s.compiled.metrics) s.batch_logs.emplace_back(metric.name(), 0.0);
  s.batch_means.assign(s.batch_logs.size(), 0);
  const std::uint64_t seed = context.config().seed;
  s.key.data<std::uint64_t>()[0] = seed;
  if (!s.sample && s.definition.input_shape) build(Shape(std::span<const std::int64_t>(*s.definition.input_shape)));
}

train::Forward Model::State::forward(Graph& graph, const Shape& x_shape, DType x_dtype, bool for_training) const {
  const Value x = graph.input("x", x_dtype, x_shape);
  Value k;
  if (for_training) k = graph.input("key", DType::u64, {2});
  return train::build(graph, definition, x, k);
}

const Shape& Model::State::need_sample() const {
  if (!sample) throw Error("model: the shape of a sample is not known yet; set `input: {shape: ...}`, or call build()");
  return *sample;
}

void Model::build(const Shape& sample) {
  State& s = *state_;
  const Context& context = s.need_context();
  if (s.sample) {
    if (!(*s.sample == sample)) throw Error(fmt::format("model: built for samples {}, got {}", s.sample->str(), sample.str()));
    return;
  }
  Graph graph;
  const train::Forward forward = s.forward(graph, with_batch(1, sample), train::input_dtype(s.definition), false);
  for (std::size_t i = 0; i < forward.specs.size(); ++i) {
    const train::ParameterSpec& spec = forward.specs[i];
    const Device home = s.home_of(spec);
    const Tensor start = train::initialize(context, home, spec, context.config().seed, static_cast<std::uint32_t>(i));
    s.parameters->create(spec.name, home, spec.dtype, spec.shape);
    s.parameters->set(spec.name, start);
  }
  std::vector<train::ParameterSpec> states;
  for (const train::LayerState& state : forward.states) {
    const train::ParameterSpec& spec = state.spec;
    const Tensor start = train::initialize(context, s.home_of(spec), spec, 0, 0);
    s.parameters->create(spec.name, s.home_of(spec), spec.dtype, spec.shape);
    s.parameters->set(spec.name, start);
    states.push_back(spec);
  }
  s.layer_states = std::move(states);
  s.specs = forward.specs;
  s.layers = forward.layers;
  s.sample = sample;
}

Device Model::State::home_of(const train::ParameterSpec& spec) const {
  const std::string device = spec.device.empty() ? main_device() : spec.device;
  return device.empty() ? context->default_device() : Device(context->state()->open_found(device));
}

void Model::State::make_optimizer_state() {
  make_loss_scale();
  for (const train::ParameterSpec& spec : specs) {
    const train::OptimizerRule& rule = train::rule_of(compiled.optimizer.kind);
    const double start = rule.start == nullptr ? 0 : compiled.optimizer.*rule.start;
    for (const std::string& suffix : rule.state(compiled.optimizer)) {
      const std::string name = train::state_name(spec, suffix);
      if (optimizer_state.contains(name)) continue;
      parameters->create(name, home_of(spec), spec.dtype, spec.shape);
      parameters->set(name, Tensor::full(spec.dtype, spec.shape, start));
      optimizer_state.insert(name);
    }
  }
}

void Model::State::make_loss_scale(bool reset) {
  if (!scales_loss() || (!reset && parameters->has(train::loss_scale_name))) return;
  const std::string home = main_device();
  train::reset_loss_scale(*parameters, home.empty() ? context->default_device() : context->device(home));
}

void Model::State::make_gradients() {
  make_loss_scale();
  for (const train::ParameterSpec& spec : specs) parameters->create(train::gradient_name(spec), home_of(spec), spec.dtype, spec.shape);
  const std::string main = main_device();
  parameters->create(train::gradient_weight_name, main.empty() ? context->default_device() : context->device(main), definition.dtype, {});
}

// ---------------------------------------------------------------- introspection

bool is_training_state(const std::string& parameter) {
  return parameter.starts_with("optimizer/") || parameter.starts_with("gradient/") || parameter == train::gradient_weight_name;
}

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

void Model::set_training(bool training) {
  state_->training = training;
}
bool Model::training() const {
  return state_->training;
}
FitEnd Model::fit_end() const {
  return state_->end;
}
const std::string& Model::stop_reason() const {
  return state_->stop_reason;
}
void Model::stop(const std::string& reason) {
  State& s = *state_;
  if (s.stop_requested) return;  // keep the first reason
  s.stop_requested = true;
  s.stop_reason = reason;
}

std::vector<std::string> Model::State::callback_keys() const {
  std::vector<std::string> keys;
  std::map<std::string, int> next_index;
  for (const Callback* callback : callbacks) {
    const std::string name = callback->name();
    const int index = next_index[name]++;
    keys.push_back(index == 0 ? name : fmt::format("{}_{}", name, index));
  }
  return keys;
}

std::map<std::string, CallbackState> Model::State::callback_states_now() const {
  if (callbacks.empty()) return callback_states;
  std::map<std::string, CallbackState> states;
  const std::vector<std::string> keys = callback_keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    CallbackState state = callbacks[i]->state();
    if (!state.numbers.empty() || !state.tensors.empty()) states[keys[i]] = std::move(state);
  }
  return states;
}

// ---------------------------------------------------------------- learning rate

double Model::State::next_rate() const {
  const Schedule& schedule = compiled.optimizer.schedule;
  const bool by_epoch = schedule.per == Schedule::Per::epoch;
  const double initial = rate.value_or(compiled.optimizer.learning_rate);
  return schedule.at(initial, by_epoch ? epochs_done : step, by_epoch ? fit_epochs : fit_steps) * rate_scale;
}
double Model::learning_rate() const {
  return state_->next_rate();
}
void Model::set_learning_rate(double rate) {
  state_->rate = rate;
  state_->rate_scale = 1;
}
void Model::scale_learning_rate(double factor) {
  state_->rate_scale *= factor;
}
void Model::set_schedule(const Schedule& schedule, std::optional<double> initial) {
  state_->compiled.optimizer.schedule = schedule;
  if (initial) state_->rate = initial;
}

std::vector<LayerSummary> Model::layers() const {
  state_->need_sample();
  return state_->layers;
}

std::string Model::summary() const {
  const State& s = *state_;
  const std::vector<LayerSummary> rows = layers();
  std::int64_t weights = 0;
  for (const LayerSummary& row : rows) weights += row.parameters - row.non_trainable;
  const auto states = static_cast<std::int64_t>(train::rule_of(s.compiled.optimizer.kind).state(s.compiled.optimizer).size());
  const Precision precision = s.need_context().config().precision;
  std::string text =
      train::summary_table(s.definition.name, rows, s.definition.dtype, weights * states, s.need_context().default_device().name());
  if (precision == Precision::float32) return text;
  text += fmt::format(" Precision: {}", name_of(precision));
  if (s.scales_loss()) {
    const bool known = s.parameters->has(train::loss_scale_name);
    const double scale = known ? s.parameters->get(train::loss_scale_name).to_host().item() : train::initial_loss_scale;
    text += fmt::format(", weights {}, loss scale {:g}", name_of(s.definition.dtype), scale);
  } else if (precision == Precision::mixed_bfloat16) {
    text += fmt::format(", weights {}", name_of(s.definition.dtype));
  }
  return text + "\n";
}

const Program& Model::program_of_step(std::int64_t batch_size) {
  State& s = *state_;
  s.need_context();
  s.need_sample();
  const Shape x = with_batch(batch_size, *s.sample);
  Graph graph;
  const train::Forward f = s.forward(graph, x, train::input_dtype(s.definition), false);
  const bool labels = train::rule_of(s.compiled.loss.loss).targets == train::Targets::labels;
  return s.program(Phase::train, x, train::input_dtype(s.definition), labels ? Shape{batch_size} : f.output.shape(),
                   labels ? DType::i64 : DType::f32);
}

Program Model::freeze(std::int64_t batch_size) {
  State& s = *state_;
  const Context& context = s.need_context();
  s.need_sample();
  const Graph graph = s.graph_of(Phase::predict, with_batch(batch_size, *s.sample), train::input_dtype(s.definition), {}, DType::none);
  return Program(context, graph, {.device = s.main_device(), .parameters = s.parameters, .freeze = true});
}

PlacementReport Model::explain(std::int64_t batch_size) {
  return program_of_step(batch_size).placement();
}

}  // namespace tenon
