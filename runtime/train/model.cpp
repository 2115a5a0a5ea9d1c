// SPDX-License-Identifier: Apache-2.0
// Model: construction, learning rate, introspection.
#include <tenon/model.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <utility>

#include "core/log.h"
#include "exec/placement.h"
#include "platform/path.h"
#include "train/binding.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/head.h"
#include "train/model_state.h"
#include "train/program/optimizers.h"
#include "train/summary.h"

namespace tenon {
namespace {

/// The fit that runs on a model uses its state: a callback that takes the state away ends the process, with the reason.
void end_if_fitting(const Model::State* state, const char* what) {
  if (state == nullptr || state->session.callbacks().empty()) return;
  log::print(fmt::format("tenon: error: the model is {} while fit runs on it, probably in a callback; wait until fit returns\n", what));
  std::abort();
}

/// Errors  mixed precision for parameters that are not f32.
void expect_precision(const ModelDefinition& definition, const Context& context) {
  const Config& config = context.config();
  const bool mixed = config.precision == Precision::mixed_bfloat16 || config.precision == Precision::mixed_float16;
  if (mixed && definition.dtype != DType::f32) {
    throw Error(fmt::format("model: precision {} ({}) expects parameters of f32, got {}; use dtype: float32 or precision: float32",
                            name_of(config.precision), config.origin_of("precision"), name_of(definition.dtype)));
  }
}

}  // namespace

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
Model::Model(Model&& other) noexcept : state_(std::move(other.state_)) {
  end_if_fitting(state_.get(), "moved");
}
Model& Model::operator=(Model&& other) noexcept {
  end_if_fitting(state_.get(), "replaced");
  end_if_fitting(other.state_.get(), "moved");
  state_ = std::move(other.state_);
  return *this;
}

void Model::compile(const Context& context, CompileOptions options) {
  State& s = state_of(state_);
  expect_precision(s.setup.definition, context);
  std::map<std::string, Tensor> optimizer_state = s.gather_optimizer_state();
  s.setup.compile(context, std::move(options));
  s.start_compiled(std::move(optimizer_state));
}

void Model::compile(const Context& context) {
  State& s = state_of(state_);
  expect_precision(s.setup.definition, context);
  std::map<std::string, Tensor> optimizer_state = s.gather_optimizer_state();
  s.setup.compile(context);
  s.start_compiled(std::move(optimizer_state));
}

void Model::State::start_compiled(std::map<std::string, Tensor> optimizer_state) {
  programs.clear();
  replicas = setup.group == nullptr ? nullptr : std::make_unique<train::Replicas>(setup, parameters, programs);
  const bool was_pipeline = pipeline != nullptr;
  pipeline = setup.is_pipeline() ? std::make_unique<train::Pipeline>(setup, parameters, programs) : nullptr;
  session.training_buffers = session.evaluation_buffers = {};
  step_memory.reset();
  step_memory_chosen = false;
  progress.drop_accumulated();
  if (parameters.built()) {
    parameters.choose_trainable();
    if (was_pipeline || pipeline != nullptr) parameters.move_to_devices();
  } else if (const auto samples = train::known_samples(setup)) {
    parameters.build(*samples);
  }
  if (setup.shards_optimizer()) {  // it was whole before, or in other shards
    for (const auto& [name, rank] : parameters.owners_of_state()) {
      if (parameters.store()->has(name)) optimizer_state.try_emplace(name, parameters.store()->get(name).to_host());
    }
  }
  if (optimizer_state.empty()) return;
  parameters.drop_optimizer_state();
  give_optimizer_state(std::move(optimizer_state));
  if (setup.shards_optimizer()) keep_gathered_state();  // with the names of this optimizer, and of the parameters that learn now
}

std::map<std::string, Tensor> Model::State::gather_optimizer_state() {
  std::map<std::string, Tensor> all;
  if (!setup.shards_optimizer() || !parameters.has_optimizer_state()) return all;
  if (replicas != nullptr) replicas->follow();
  std::vector<const train::Parameters*> of_devices{&parameters};
  if (replicas != nullptr) std::ranges::copy(replicas->others(), std::back_inserter(of_devices));
  const std::map<std::string, std::pair<DType, Shape>> types = parameters.types(true);
  for (const auto& [name, rank] : parameters.owners_of_state()) {
    const int process = rank / setup.device_count(), here = setup.processes == nullptr ? 0 : setup.processes->rank();
    Tensor value = Tensor::empty(types.at(name).first, types.at(name).second);
    if (process == here)
      value.copy_from(of_devices.at(static_cast<std::size_t>(rank % setup.device_count()))->store()->get(name).to_host());
    if (setup.processes != nullptr) setup.processes->broadcast(value.raw(), static_cast<std::uint64_t>(value.size_bytes()), process);
    all.emplace(name, std::move(value));
  }
  return all;
}

void Model::State::keep_gathered_state() {
  if (setup.processes == nullptr) return;
  gathered_state = gather_optimizer_state();
  if (setup.processes->rank() > 0) gathered_state.clear();
  gathered_step = progress.saved().step;
}

std::map<std::string, Tensor> Model::State::optimizer_state_to_save() {
  if (!setup.shards_optimizer() || !parameters.has_optimizer_state() || parameters.owners_of_state().empty()) return {};
  if (setup.processes == nullptr) return gather_optimizer_state();
  if (setup.processes->rank() == 0 && gathered_step == progress.saved().step) return gathered_state;
  if (setup.processes->rank() == 0 && loaded_state) {
    std::map<std::string, Tensor> state;
    for (NamedTensor& stored : train::CheckpointWeights(*loaded_state).read([&](const std::string& name) { return setup.shards(name); }))
      state.emplace(std::move(stored.name), std::move(stored.tensor));
    return state;
  }
  throw Error(
      "save: the optimizer state is sharded over processes (parallel.shard), and process 0 has all of it at the end of an epoch, after fit "
      "and before the first step after a load; save the model then, on process 0");
}

void Model::State::give_optimizer_state(std::map<std::string, Tensor> values) {
  parameters.give_optimizer_state(values);
  parameters.make_optimizer_state();
  if (replicas != nullptr) replicas->give_optimizer_state(values);
  loaded_state.reset();
  if (setup.processes == nullptr) return;
  gathered_state = std::move(values);
  gathered_step = progress.saved().step;
}

void Model::replace_head(const std::string& after, std::vector<LayerDefinition> head) {
  State& s = state_of(state_);
  end_if_fitting(state_.get(), "given another head");
  ModelDefinition definition = s.setup.definition;
  const std::size_t kept = train::cut_after(definition, after, *s.setup.sources);
  const bool was_file = layers::is_one_file(s.setup.definition);
  std::map<std::string, Tensor> weights;
  if (s.parameters.built()) {
    const std::vector<std::string> names = train::names_of_layers(s.parameters.layers());
    for (const auto& [name, tensor] : s.parameters.store()->all()) {
      const auto owner = std::ranges::find(names, name.substr(0, name.find('/')));
      const bool is_kept = was_file || static_cast<std::size_t>(owner - names.begin()) < kept;
      // What a file brings along has its layer's name in front as soon as the model has other layers.
      const bool moves = was_file && !head.empty() && owner == names.end();
      if (is_kept && !is_training_state(name)) weights[moves ? names[0] + "/" + name : name] = tensor.to_host();
    }
  }
  definition.layers.insert(definition.layers.end(), std::make_move_iterator(head.begin()), std::make_move_iterator(head.end()));
  auto replaced = std::make_unique<State>(std::move(definition));
  replaced->parameters.set_initial(std::move(weights));
  state_ = std::move(replaced);
}

void Model::build(const Shape& sample) {
  state_of(state_).parameters.build({&sample, 1});
}

bool Model::built() const {
  return state_of(state_).parameters.built();
}

void Model::build_for(const Dataset& data) {
  State& s = state_of(state_);
  s.setup.need_context();
  s.parameters.build(train::samples_of(s.setup, data));
}

// ---------------------------------------------------------------- introspection

bool is_training_state(const std::string& parameter) {
  return parameter.starts_with("optimizer/") || parameter.starts_with("gradient/") || parameter == train::gradient_weight_name;
}

std::int64_t Model::step() const {
  return state_of(state_).progress.saved().step;
}
std::int64_t Model::epochs_done() const {
  return state_of(state_).progress.saved().epoch;
}
const Shape& Model::sample_shape() const {
  return state_of(state_).parameters.sample();
}
const std::vector<SampleType>& Model::inputs() const {
  return state_of(state_).parameters.inputs();
}
const std::vector<SampleType>& Model::outputs() const {
  return state_of(state_).parameters.outputs();
}
const ModelDefinition& Model::definition() const {
  return state_of(state_).setup.definition;
}
ParameterStore& Model::parameters() {
  return *state_of(state_).parameters.store();
}

void Model::set_training(bool training) {
  state_of(state_).training = training;
}
bool Model::training() const {
  return state_of(state_).training;
}
FitEnd Model::fit_end() const {
  return state_of(state_).session.how();
}
const std::string& Model::stop_reason() const {
  return state_of(state_).session.stop_reason();
}
const std::vector<std::string>& Model::logged_names() const {
  return state_of(state_).session.logged_names();
}
const std::string& Model::run() const {
  return state_of(state_).progress.saved().run;
}
void Model::stop(const std::string& reason) {
  state_of(state_).session.stop(FitEnd::stopped, reason);
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
  return state_of(state_).next_rate();
}
void Model::set_learning_rate(double rate) {
  expect_rate("set_learning_rate: the rate", rate);
  train::TrainingProgress& progress = state_of(state_).progress;
  progress.set_rate(rate);
  progress.set_rate_scale(1);
}
void Model::scale_learning_rate(double factor) {
  expect_rate("scale_learning_rate: the factor", factor);
  train::TrainingProgress& progress = state_of(state_).progress;
  progress.set_rate_scale(progress.saved().rate_scale * factor);
}
void Model::set_schedule(const Schedule& schedule, std::optional<double> initial) {
  if (initial) expect_rate("set_schedule: the initial rate", *initial);
  train::check(schedule);
  state_of(state_).setup.options.optimizer.schedule = schedule;
  if (initial) state_of(state_).progress.set_rate(*initial);
}

std::vector<LayerSummary> Model::layers() const {
  state_of(state_).parameters.sample();
  return state_of(state_).parameters.layers();
}

std::string Model::summary(std::int64_t batch_size) const {
  const State& s = state_of(state_);
  std::string text = train::summary_of(s.setup, layers(), outputs());
  if (s.setup.scales_loss()) {
    const ParameterStore& store = *s.parameters.store();
    const bool made = store.has(train::loss_scale_name);
    text.pop_back();  // the line about the precision goes on
    text += fmt::format(", loss scale {:g}\n", made ? store.get(train::loss_scale_name).to_host().item() : train::initial_loss_scale);
  }
  if (batch_size != 0) text += train::memory_table(s.programs, s.batch_type(batch_size), !s.setup.losses.empty());
  return text;
}

train::BatchType Model::State::batch_type(std::int64_t batch_size) const {
  if (batch_size < 1) throw Error(fmt::format("model: batch_size is {}, expected at least 1", batch_size));
  return train::BatchType::of(setup, parameters.inputs(), parameters.outputs(), batch_size);
}

const Program& Model::program_of_step(std::int64_t batch_size) {
  State& s = state_of(state_);
  s.setup.need_context();
  const train::BatchType batch = s.batch_type(batch_size);
  return s.programs.get(s.phase_of_step(), s.phase_of_step() == train::Phase::train ? batch.part_of(s.setup) : batch);
}

Model::Memory Model::memory(std::int64_t batch_size) const {
  const State& s = state_of(state_);
  const train::BatchType batch = s.batch_type(batch_size);
  return {s.setup.losses.empty() ? std::vector<MemoryPlan>() : s.programs.plan_memory(train::Phase::train, batch),
          s.programs.plan_memory(train::Phase::predict, batch)};
}

const ProgramCounts& Model::program_counts() const {
  return state_of(state_).programs.counts();
}

CommunicationCounts Model::communication() const {
  return state_of(state_).programs.communication();
}

int Model::rank() const {
  const train::ModelSetup& setup = state_of(state_).setup;
  return setup.processes == nullptr ? 0 : setup.processes->rank();
}
int Model::rank_count() const {
  const train::ModelSetup& setup = state_of(state_).setup;
  return setup.processes == nullptr ? 1 : setup.processes->size();
}

Program Model::freeze(std::int64_t batch_size) {
  State& s = state_of(state_);
  s.setup.need_context();
  return s.programs.frozen(train::BatchType::of(s.parameters.inputs(), batch_size));
}

void Model::export_onnx(const std::string& path, const onnx::ExportOptions& options) const {
  const State& s = state_of(state_);
  const std::vector<SampleType>& inputs = s.parameters.inputs();
  onnx::ExportOptions chosen = options;
  if (chosen.inputs.empty() && inputs.size() > 1) chosen.inputs = s.setup.input_names();
  if (chosen.outputs.empty())
    chosen.outputs = s.setup.interface.outputs.size() == 1 ? std::vector<std::string>{"y"} : s.setup.output_names();
  if (chosen.graph_name.empty()) chosen.graph_name = s.setup.definition.name;
  const auto graph_of = [&](std::int64_t batch) { return s.programs.prediction(train::BatchType::of(inputs, batch)); };
  onnx::export_graph(
      platform::path_of(path), graph_of, [&](const std::string& name) { return s.parameters.store()->get(name); }, chosen);
}

PlacementReport Model::explain(std::int64_t batch_size) {
  const State& s = state_of(state_);
  try {
    if (s.pipeline != nullptr && !s.setup.losses.empty()) return s.pipeline->explain(s.batch_type(batch_size));
    if (s.replicas != nullptr) return s.replicas->explain(s.phase_of_step(), s.batch_type(batch_size));
    return program_of_step(batch_size).placement();
  } catch (const exec::PlacementError& error) {
    return error.report;
  }
}

}  // namespace tenon
