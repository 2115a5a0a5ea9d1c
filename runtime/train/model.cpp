// SPDX-License-Identifier: Apache-2.0
// Model: construction, learning rate, introspection.
#include <tenon/model.h>

#include <fmt/core.h>

#include <cmath>

#include "train/model_state.h"
#include "train/optimizers.h"
#include "train/summary.h"

namespace tenon {

// ---------------------------------------------------------------- construction

Model::Model(ModelDefinition definition) {
  if (definition.layers.empty()) throw Error("model: expected at least one layer, got none");
  state_ = std::make_unique<State>(std::move(definition));
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

void Model::compile(const Context& context, CompileOptions options) {
  State& s = *state_;
  for (const std::string& device : options.parallel_devices) static_cast<void>(context.device(device));  // report a missing device now
  const Config& config = context.config();
  const bool mixed = config.precision == Precision::mixed_bfloat16 || config.precision == Precision::mixed_float16;
  if (mixed && s.setup.definition.dtype != DType::f32) {
    throw Error(fmt::format("model: precision {} ({}) expects parameters of f32, got {}; use dtype: float32 or precision: float32",
                            name_of(config.precision), config.origin_of("precision"), name_of(s.setup.definition.dtype)));
  }
  s.setup.context = context;
  options.optimizer = train::with_defaults(options.optimizer);
  s.setup.options = std::move(options);
  s.programs.clear();
  s.session.training_buffers = s.session.evaluation_buffers = {};
  s.progress.drop_accumulated();
  if (const auto& shape = s.setup.definition.input_shape; shape && !s.parameters.built())
    build(Shape(std::span<const std::int64_t>(*shape)));
}

void Model::build(const Shape& sample) {
  state_->parameters.build(sample);
}

// ---------------------------------------------------------------- introspection

bool is_training_state(const std::string& parameter) {
  return parameter.starts_with("optimizer/") || parameter.starts_with("gradient/") || parameter == train::gradient_weight_name;
}

std::int64_t Model::step() const {
  return state_->progress.saved().step;
}
std::int64_t Model::epochs_done() const {
  return state_->progress.saved().epoch;
}
const ModelDefinition& Model::definition() const {
  return state_->setup.definition;
}
ParameterStore& Model::parameters() {
  return *state_->parameters.store();
}

void Model::set_training(bool training) {
  state_->training = training;
}
bool Model::training() const {
  return state_->training;
}
FitEnd Model::fit_end() const {
  return state_->session.how();
}
const std::string& Model::stop_reason() const {
  return state_->session.stop_reason();
}
void Model::stop(const std::string& reason) {
  state_->session.stop(FitEnd::stopped, reason);
}

std::map<std::string, CallbackState> Model::State::callback_states() const {
  return session.callbacks().empty() ? progress.saved().callbacks : session.callback_states();
}

// ---------------------------------------------------------------- learning rate

namespace {

void expect_rate(const char* what, double rate) {
  if (!(rate >= 0) || !std::isfinite(rate)) throw Error(fmt::format("{} is {}, expected a finite number of at least 0", what, rate));
}

}  // namespace

double Model::learning_rate() const {
  return state_->next_rate();
}
void Model::set_learning_rate(double rate) {
  expect_rate("set_learning_rate: the rate", rate);
  state_->progress.set_rate(rate);
  state_->progress.set_rate_scale(1);
}
void Model::scale_learning_rate(double factor) {
  expect_rate("scale_learning_rate: the factor", factor);
  state_->progress.set_rate_scale(state_->progress.saved().rate_scale * factor);
}
void Model::set_schedule(const Schedule& schedule, std::optional<double> initial) {
  if (initial) expect_rate("set_schedule: the initial rate", *initial);
  train::check(schedule);
  state_->setup.options.optimizer.schedule = schedule;
  if (initial) state_->progress.set_rate(*initial);
}

std::vector<LayerSummary> Model::layers() const {
  state_->parameters.sample();
  return state_->parameters.layers();
}

std::string Model::summary() const {
  const train::ModelSetup& setup = state_->setup;
  const std::vector<LayerSummary> rows = layers();
  std::int64_t weights = 0;
  for (const LayerSummary& row : rows) weights += row.parameters - row.non_trainable;
  const auto states = static_cast<std::int64_t>(train::rule_of(setup.options.optimizer.kind).state(setup.options.optimizer).size());
  const Precision precision = setup.need_context().config().precision;
  std::string text = train::summary_table(setup.definition.name, rows, setup.definition.dtype, weights * states,
                                          setup.need_context().default_device().name());
  if (precision == Precision::float32) return text;
  text += fmt::format(" Precision: {}", name_of(precision));
  if (setup.scales_loss()) {
    const ParameterStore& store = *state_->parameters.store();
    const double scale = store.has(train::loss_scale_name) ? store.get(train::loss_scale_name).to_host().item() : train::initial_loss_scale;
    text += fmt::format(", weights {}, loss scale {:g}", name_of(setup.definition.dtype), scale);
  } else if (precision == Precision::mixed_bfloat16) {
    text += fmt::format(", weights {}", name_of(setup.definition.dtype));
  }
  return text + "\n";
}

const Program& Model::program_of_step(std::int64_t batch_size) {
  State& s = *state_;
  s.setup.need_context();
  const bool labels = train::rule_of(s.setup.options.loss.loss).targets == train::Targets::labels;
  const Shape x = s.parameters.sample().with_batch(batch_size);
  const Shape y = labels ? Shape{batch_size} : s.parameters.layers().back().output.with_batch(batch_size);
  return s.programs.get(train::Phase::train, {x, train::input_dtype(s.setup.definition), y, labels ? DType::i64 : DType::f32});
}

Program Model::freeze(std::int64_t batch_size) {
  State& s = *state_;
  s.setup.need_context();
  return s.programs.frozen({s.parameters.sample().with_batch(batch_size), train::input_dtype(s.setup.definition)});
}

PlacementReport Model::explain(std::int64_t batch_size) {
  return program_of_step(batch_size).placement();
}

}  // namespace tenon
