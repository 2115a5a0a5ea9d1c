// SPDX-License-Identifier: Apache-2.0
// Callbacks that monitor a metric and act on the model.
#include <tenon/callbacks.h>

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <typeinfo>

#include "text/counted.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "yaml/suggest.h"

namespace tenon {

// ---------------------------------------------------------------- common

std::string Callback::name() const {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), &std::free);
  return text != nullptr ? text.get() : typeid(*this).name();
}

Model& Callback::model() const {
  if (model_ == nullptr) throw Error("callback " + name() + ": not attached to a model; fit() attaches callbacks");
  return *model_;
}

std::unique_ptr<Callback> make_callback(const CallbackDefinition& definition) {
  return std::visit(
      [](const auto& options) -> std::unique_ptr<Callback> {
        return std::make_unique<typename std::decay_t<decltype(options)>::Of>(options);
      },
      definition);
}

// ---------------------------------------------------------------- the monitored value

namespace {

std::vector<std::string> names_of(const Logs& logs) {
  std::vector<std::string> names;
  for (const auto& [name, value] : logs) names.push_back(name);
  return names;
}

}  // namespace

std::string Best::resolve(const std::vector<std::string>& logged) const {
  const auto has = [&](const std::string& name) { return std::find(logged.begin(), logged.end(), name) != logged.end(); };
  const std::string name = !monitor_.name.empty() ? monitor_.name : has("val_loss") ? "val_loss" : "loss";
  if (has(name)) return name;
  throw Error(fmt::format("monitor '{}' is not logged; logged are {}{}", name, fmt::join(logged, ", "), yaml::did_you_mean(name, logged)));
}

void Best::check(const std::vector<std::string>& logged) const {
  if (!logged.empty()) static_cast<void>(resolve(logged));
}

bool Best::improved(const EpochLogs& logs) {
  const std::string name = resolve(names_of(logs.logs));
  const double now = std::find_if(logs.logs.begin(), logs.logs.end(), [&](const auto& entry) { return entry.first == name; })->second;
  if (std::isnan(now)) return false;
  const bool higher =
      monitor_.mode == Monitor::Mode::max || (monitor_.mode == Monitor::Mode::automatic && name.find("accuracy") != std::string::npos);
  if (value_ && !(higher ? now > *value_ + monitor_.min_delta : now < *value_ - monitor_.min_delta)) return false;
  value_ = now;
  return true;
}

namespace {

/// Stores `best` if it is finite: YAML holds no other numbers.
void put(CallbackState& state, const Best& best) {
  if (best.value() && std::isfinite(*best.value())) state.numbers["best"] = *best.value();
}
double number_of(const CallbackState& state, const char* name) {
  const auto found = state.numbers.find(name);
  return found == state.numbers.end() ? 0 : found->second;
}
void get(const CallbackState& state, Best& best) {
  if (state.numbers.contains("best")) best.set(number_of(state, "best"));
}

}  // namespace

// ---------------------------------------------------------------- checkpoints

Checkpoint::Checkpoint(Options options) : options_(std::move(options)), best_(options_.monitor) {}
Checkpoint::~Checkpoint() = default;

void Checkpoint::train_begin(std::int64_t, std::int64_t) {
  if (options_.best) best_.check(model().logged_names());
  folder_.reset();
  folder_ = std::make_unique<train::CheckpointFolder>(options_.directory,
                                                      train::CheckpointFolder::Start{model().run(), model().step(), options_.overwrite});
}

void Checkpoint::epoch_end(const EpochLogs& logs) {
  if (options_.best) {
    if (!best_.improved(logs)) return;
    model().save(options_.directory, "best");
    if (folder_ != nullptr) folder_->add_other();
    return;
  }
  const std::int64_t epoch = logs.epoch + 1;
  if (epoch % options_.every_epochs != 0) return;
  model().save(options_.directory, train::CheckpointFolder::name_of_epoch(epoch));
  if (folder_ != nullptr) folder_->add(epoch, options_.keep);
}

void Checkpoint::train_end() {
  folder_.reset();
}

CallbackState Checkpoint::state() const {
  CallbackState state;
  put(state, best_);
  return state;
}
void Checkpoint::restore(const CallbackState& state) {
  get(state, best_);
}

// ---------------------------------------------------------------- early stopping

void EarlyStopping::train_begin(std::int64_t, std::int64_t) {
  best_.check(model().logged_names());
  best_.clear();
  waited_ = 0;
  weights_.clear();
}

void EarlyStopping::epoch_end(const EpochLogs& logs) {
  if (best_.improved(logs)) {
    waited_ = 0;
    if (options_.restore_best) {
      weights_.clear();
      for (const auto& [name, tensor] : model().parameters().all()) {
        if (!is_training_state(name)) weights_.push_back({name, tensor.to_host()});
      }
    }
    return;
  }
  if (++waited_ < options_.patience) return;
  const std::string best = best_.value() ? fmt::format("; the best value was {:.6g}", *best_.value()) : "";
  model().stop(fmt::format("early_stopping: no improvement for {}{}", counted(waited_, "epoch"), best));
}

void EarlyStopping::train_end() {
  if (model().fit_end() == FitEnd::interrupted) return;  // the run will be resumed from the current weights
  for (const NamedTensor& kept : weights_) model().parameters().set(kept.name, kept.tensor);
}

CallbackState EarlyStopping::state() const {
  CallbackState state;
  put(state, best_);
  state.numbers["waited"] = static_cast<double>(waited_);
  state.tensors = weights_;
  return state;
}
void EarlyStopping::restore(const CallbackState& state) {
  get(state, best_);
  waited_ = static_cast<std::int64_t>(number_of(state, "waited"));
  if (options_.restore_best) weights_ = state.tensors;
}

// ---------------------------------------------------------------- learning rate

void ReduceOnPlateau::train_begin(std::int64_t, std::int64_t) {
  best_.check(model().logged_names());
  best_.clear();
  waited_ = cooling_ = 0;
}

void ReduceOnPlateau::epoch_end(const EpochLogs& logs) {
  if (cooling_ > 0) {
    --cooling_;
    waited_ = 0;
  }
  if (best_.improved(logs)) {
    waited_ = 0;
  } else if (cooling_ == 0 && ++waited_ >= options_.patience) {
    const double now = model().learning_rate();
    const double next = std::max(now * options_.factor, options_.minimum);
    if (next < now) model().scale_learning_rate(next / now);
    waited_ = 0;
    cooling_ = options_.cooldown;
  }
}

CallbackState ReduceOnPlateau::state() const {
  CallbackState state;
  put(state, best_);
  state.numbers["waited"] = static_cast<double>(waited_);
  state.numbers["cooling"] = static_cast<double>(cooling_);
  return state;
}
void ReduceOnPlateau::restore(const CallbackState& state) {
  get(state, best_);
  waited_ = static_cast<std::int64_t>(number_of(state, "waited"));
  cooling_ = static_cast<std::int64_t>(number_of(state, "cooling"));
}

void LearningRateSchedule::train_begin(std::int64_t, std::int64_t) {
  if (function_) return;
  model().set_schedule(options_.schedule, options_.initial);
}
void LearningRateSchedule::epoch_begin(std::int64_t epoch) {
  if (function_) model().set_learning_rate(function_(epoch, model().learning_rate()));
}

// ---------------------------------------------------------------- others

void TerminateOnNan::batch_end(std::int64_t batch, const Logs& logs, const BatchResult&) {
  if (!std::isfinite(logs.front().second)) {
    model().stop(fmt::format("terminate_on_nan: the loss is {} at step {}, batch {}", logs.front().second, model().step(), batch + 1));
  }
}

void LambdaCallback::train_begin(std::int64_t epochs, std::int64_t batches) {
  if (functions_.train_begin) functions_.train_begin(epochs, batches);
}
void LambdaCallback::epoch_begin(std::int64_t epoch) {
  if (functions_.epoch_begin) functions_.epoch_begin(epoch);
}
void LambdaCallback::batch_end(std::int64_t batch, const Logs& logs, const BatchResult& result) {
  if (functions_.batch_end) functions_.batch_end(batch, logs, result);
}
void LambdaCallback::epoch_end(const EpochLogs& logs) {
  if (functions_.epoch_end) functions_.epoch_end(logs);
}
void LambdaCallback::train_end() {
  if (functions_.train_end) functions_.train_end();
}

}  // namespace tenon
