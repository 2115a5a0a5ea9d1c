// SPDX-License-Identifier: Apache-2.0
// Callbacks that monitor a metric and act on the model.
#include <tenon/callbacks.h>

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <set>
#include <typeinfo>

#include "yaml/suggest.h"

namespace tenon {

namespace fs = std::filesystem;

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

bool Best::improved(const EpochLogs& logs) {
  const auto find = [&](const std::string& name) {
    return std::find_if(logs.logs.begin(), logs.logs.end(), [&](const auto& entry) { return entry.first == name; });
  };
  auto found = find(monitor_.name);
  if (monitor_.name.empty()) {
    found = find("val_loss");
    if (found == logs.logs.end()) found = find("loss");
  }
  if (found == logs.logs.end()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : logs.logs) names.push_back(name);
    throw Error(fmt::format("monitor '{}' is not logged; logged are {}{}", monitor_.name, fmt::join(names, ", "),
                            yaml::did_you_mean(monitor_.name, names)));
  }
  const double now = found->second;
  if (std::isnan(now)) return false;
  const bool higher = monitor_.mode == Monitor::Mode::max ||
                      (monitor_.mode == Monitor::Mode::automatic && found->first.find("accuracy") != std::string::npos);
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

void Checkpoint::epoch_end(const EpochLogs& logs) {
  if (options_.best) {
    if (best_.improved(logs)) model().save(options_.directory, "best");
    return;
  }
  if ((logs.epoch + 1) % options_.every_epochs != 0) return;
  model().save(options_.directory, fmt::format("epoch-{:06}", logs.epoch + 1));
  if (options_.keep > 0) prune();
}

void Checkpoint::prune() const {
  // The YAML file is removed first: what remains of an interrupted removal is not a checkpoint, and is removed by the next one.
  static constexpr const char* endings[] = {".yaml", ".safetensors", ".yaml.tmp", ".safetensors.tmp", ".old.safetensors"};
  const std::string prefix = "epoch-";
  std::set<std::string> stems, complete;  // sorted by epoch
  for (const fs::directory_entry& entry : fs::directory_iterator(options_.directory)) {
    const std::string name = entry.path().filename().string();
    const std::string stem = name.substr(0, name.find('.')), ending = name.substr(stem.size());
    const bool numbered = stem.starts_with(prefix) && stem.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
    if (!numbered || std::find(std::begin(endings), std::end(endings), ending) == std::end(endings)) continue;
    stems.insert(stem);
    if (ending == endings[0]) complete.insert(stem);
  }
  while (complete.size() > static_cast<std::size_t>(options_.keep)) complete.erase(complete.begin());
  for (const std::string& stem : stems) {
    if (complete.empty() || stem >= *complete.begin()) break;
    std::error_code code;
    for (const char* ending : endings) fs::remove(fs::path(options_.directory) / (stem + ending), code);
  }
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
  model().stop(fmt::format("early_stopping: no improvement for {} epoch{}{}", waited_, waited_ == 1 ? "" : "s", best));
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

void TerminateOnNan::batch_end(std::int64_t batch, const Logs& logs) {
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
void LambdaCallback::batch_end(std::int64_t batch, const Logs& logs) {
  if (functions_.batch_end) functions_.batch_end(batch, logs);
}
void LambdaCallback::epoch_end(const EpochLogs& logs) {
  if (functions_.epoch_end) functions_.epoch_end(logs);
}
void LambdaCallback::train_end() {
  if (functions_.train_end) functions_.train_end();
}

}  // namespace tenon
