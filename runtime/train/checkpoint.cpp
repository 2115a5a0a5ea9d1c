// SPDX-License-Identifier: Apache-2.0
// Checkpoints: <name>.safetensors holds the tensors, <name>.yaml describes them and is written last.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <tenon/model.h>

#include "io/atomic_file.h"
#include "io/safetensors_file.h"
#include "platform/file.h"
#include "platform/path.h"
#include "train/agreement.h"
#include "train/checkpoint/checkpoint_file.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/model_state.h"
#include "train/program/loss_scale.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

/// The backup of a checkpoint's weights while a checkpoint of the same name is written.
fs::path backup_of(const fs::path& folder, const std::string& name) {
  return folder / platform::path_of(name + ".old.safetensors");
}

/// Called before the weights of a checkpoint are overwritten: links them under a second name and points the YAML to it, so that the old
/// checkpoint stays valid until the YAML of the new one replaces it. An incomplete checkpoint is not preserved.
void preserve_weights(const fs::path& folder, const std::string& name, const fs::path& weights) {
  const std::string yaml = platform::text_of(folder / platform::path_of(name + ".yaml"));
  train::CheckpointFile old;
  try {
    old = train::read_checkpoint_file(yaml);
  } catch (const Error&) {
    return;
  }
  std::error_code code;
  if (platform::path_of(old.weights).filename() != weights.filename() || !fs::exists(weights, code)) return;
  const fs::path backup = backup_of(folder, name);
  fs::remove(backup, code);
  fs::create_hard_link(weights, backup, code);
  old.weights = platform::text_of(backup);
  if (code) code = platform::copy_file(platform::text_of(weights), old.weights);  // the file system has no hard links
  if (code) throw Error(fmt::format("{}: cannot be copied to {}: {}", platform::text_of(weights), old.weights, platform::message_of(code)));
  io::write_atomically(yaml, train::checkpoint_text(old));
}

}  // namespace

void Model::save(const std::string& folder, const std::string& name) const {
  State& s = state_of(state_);
  if (!s.parameters.built()) throw Error("save: the model has no parameters yet; call build() or fit() first");
  const fs::path home = platform::path_of(folder);
  std::error_code code;
  fs::create_directories(home, code);
  if (code) throw Error(fmt::format("save: folder {} cannot be created: {}", folder, code.message()));
  std::vector<NamedTensor> tensors;
  for (const auto& [key, tensor] : s.parameters.store()->all()) {
    // Accumulated gradients are not saved: training resumes after a complete step.
    if (!is_training_state(key) || key.starts_with("optimizer/")) tensors.push_back({key, tensor});
  }
  for (const auto& [key, tensor] : s.optimizer_state_to_save()) {
    if (!s.parameters.store()->has(key)) tensors.push_back({key, tensor});  // of another rank
  }
  std::ranges::sort(tensors, {}, &NamedTensor::name);
  train::CheckpointFile checkpoint;
  checkpoint.model = s.setup.definition.name;
  checkpoint.weights = platform::text_of(home / platform::path_of(name + ".safetensors"));
  checkpoint.optimizer = name_of(s.setup.options.optimizer.kind);
  checkpoint.custom_loss = s.setup.custom_losses();
  for (const SampleType& input : s.parameters.inputs()) checkpoint.samples[input.name].assign(input.shape.begin(), input.shape.end());
  checkpoint.seed = s.setup.need_context().config().seed;
  checkpoint.progress = s.progress.saved();
  checkpoint.progress.callbacks = s.callback_states();
  for (const auto& [key, state] : checkpoint.progress.callbacks) {
    for (const NamedTensor& kept : state.tensors) tensors.push_back({train::callback_prefix(key) + kept.name, kept.tensor});
  }
  preserve_weights(home, name, platform::path_of(checkpoint.weights));
  checkpoint.checksum = io::write_safetensors(checkpoint.weights, tensors, {{"format", "tenon-checkpoint"}});
  checkpoint.file = platform::text_of(home / platform::path_of(name + ".yaml"));
  io::write_atomically(checkpoint.file, train::checkpoint_text(checkpoint));
  fs::remove(backup_of(home, name), code);
  // The state that was loaded is read again when it is saved: from this file, if it has replaced that one.
  if (s.loaded_state && fs::equivalent(platform::path_of(s.loaded_state->file), platform::path_of(checkpoint.file), code))
    s.loaded_state = checkpoint;
}

namespace {

/// Errors  the checkpoint was trained with a custom loss that the model does not have, or the other way round.
void expect_loss(const train::CheckpointFile& checkpoint, const train::ModelSetup& setup) {
  const std::string &saved = checkpoint.custom_loss, own = setup.custom_losses();
  if (saved == own) return;
  const auto named = [](const std::string& name) { return name.empty() ? "a loss of the library" : "the custom loss '" + name + "'"; };
  throw Error(fmt::format("{}: was trained with {}, this model has {}; {}load the weights alone", checkpoint.file, named(saved),
                          own.empty() && setup.losses.size() == 1 ? "the loss " + setup.losses[0].loss.str() : named(own),
                          saved.empty() ? "" : "compile it with the function of that loss before, for no file has it, or "));
}

/// What a process has read of a checkpoint.
struct LoadedCheckpoint {
  train::SavedProgress progress;
  std::vector<NamedTensor> values, sharded;
  bool has_sharded = false;  ///< whether the file has sharded state, of this process or of another one
};

/// Reads what this process needs of one checkpoint: of sharded optimizer state that of its own ranks. The model is unchanged, or only
/// built.
LoadedCheckpoint read_checkpoint(Model::State& s, const train::CheckpointFile& checkpoint, Model::Load what) {
  LoadedCheckpoint loaded{.progress = checkpoint.progress, .values = {}, .sharded = {}};
  train::CheckpointWeights file(checkpoint);
  // Check everything before changing anything.
  const std::string weights_alone = fmt::format(
      "or start from its weights alone: `resume: never`, `weights: {{file: {}, strict: false}}` and another checkpoint.directory",
      checkpoint.file);
  const auto misfit = [&](const std::string& reason) {
    throw Error(fmt::format("{}: belongs to another model: {}; use the model.yaml that it was saved with{}", checkpoint.file, reason,
                            what == Model::Load::all ? ", " + weights_alone : ""));
  };
  const std::string own_optimizer = name_of(s.setup.options.optimizer.kind);
  const auto expect_optimizer = [&] {
    if (checkpoint.optimizer == own_optimizer) return;
    throw Error(fmt::format("{}: was trained with the optimizer {}, this run uses {}; keep {}, {}", checkpoint.file, checkpoint.optimizer,
                            own_optimizer, checkpoint.optimizer, weights_alone));
  };
  std::vector<Shape> samples;
  std::string shown;
  for (const layers::ModelInput& input : s.setup.interface.inputs) {
    const bool is_only = checkpoint.samples.size() == 1 && s.setup.interface.inputs.size() == 1;
    const auto found = is_only ? checkpoint.samples.begin() : checkpoint.samples.find(input.name);
    if (found == checkpoint.samples.end())
      misfit(fmt::format("key 'sample': expected the input '{}', it has none of that name", input.name));
    samples.emplace_back(std::span<const std::int64_t>(found->second));
    shown += (shown.empty() ? "" : ", ") + samples.back().str();
    if (!s.parameters.built()) continue;
    if (const Shape& own = s.parameters.inputs()[samples.size() - 1].shape; !(own == samples.back()))
      misfit(fmt::format("key 'sample': expected {}, got {}", own.str(), samples.back().str()));
  }
  try {
    s.parameters.build(samples);
  } catch (const Error& error) {
    misfit(fmt::format("key 'sample': {} does not fit the first layers: {}", shown, error.what()));
  }
  const bool all = what == Model::Load::all;
  std::set<std::string> wanted;
  std::map<std::string, std::pair<DType, Shape>> expected = s.parameters.types(all);
  // State of a parameter that both have: the models are equal, and what differs is how the parameter is trained.
  const auto expect_state = [&](const std::string& name, bool is_stored) {
    expect_optimizer();
    const std::size_t begin = name.find('/') + 1, end = name.rfind('/');  // of optimizer/dense/kernel/m
    const std::string parameter = end > begin ? name.substr(begin, end - begin) : "";
    if (file.find(parameter) == nullptr || !expected.contains(parameter)) return;
    throw Error(fmt::format(
        "{}: its optimizer {} has {} '{}', which this run {}; use the options of the optimizer, and what is "
        "`trainable`, that it was saved with, {}",
        checkpoint.file, own_optimizer, is_stored ? "the state" : "no state", name, is_stored ? "does not have" : "needs", weights_alone));
  };
  std::map<std::string, int> owners;  // processes, by the name of sharded state
  if (all && s.setup.shards_optimizer()) {
    for (const auto& [name, rank] : s.parameters.owners_of_state()) owners[name] = rank / s.setup.device_count();
  }
  const int process = s.setup.processes == nullptr ? 0 : s.setup.processes->rank();
  bool has_state = false;
  const auto type_of = [](DType dtype, const Shape& shape) { return name_of(dtype) + shape.str(); };
  for (const io::TensorEntry& stored : file.entries()) {
    if (stored.name.starts_with("callback/")) {
      if (all) wanted.insert(stored.name);
      continue;
    }
    if (!all && is_training_state(stored.name)) continue;
    if (train::is_loss_scale(stored.name)) {  // the checkpoint may have been saved with another precision
      if (!s.setup.scales_loss()) continue;
      expected[stored.name] = {stored.name == train::loss_scale_name ? DType::f32 : DType::i64, Shape{}};
      wanted.insert(stored.name);
      continue;
    }
    has_state = has_state || is_training_state(stored.name);
    if (!expected.contains(stored.name)) {
      if (is_training_state(stored.name)) expect_state(stored.name, true);
      misfit(fmt::format("it has a parameter '{}' {}, which this model does not have", stored.name, type_of(stored.dtype, stored.shape)));
    }
    loaded.has_sharded = loaded.has_sharded || s.setup.shards(stored.name);
    const auto owner = owners.find(stored.name);
    if (owner == owners.end() || owner->second == process) wanted.insert(stored.name);
  }
  for (const auto& [name, type] : expected) {
    const io::TensorEntry* stored = file.find(name);
    const std::string own = type_of(type.first, type.second);
    if (stored == nullptr) {
      if (is_training_state(name) && !has_state && checkpoint.progress.step == 0) continue;  // saved before the first step: it is zero
      if (is_training_state(name)) expect_state(name, false);
      misfit(fmt::format("it does not have parameter '{}' {}", name, own));
    }
    if (stored->dtype != type.first || !(stored->shape == type.second)) {
      misfit(fmt::format("expected parameter '{}' {}, got {}", name, own, type_of(stored->dtype, stored->shape)));
    }
  }
  if (all) expect_optimizer();
  if (all) expect_loss(checkpoint, s.setup);
  for (NamedTensor& stored : file.read([&](const std::string& name) { return wanted.contains(name); })) {
    if (!stored.name.starts_with("callback/")) {
      (s.setup.shards(stored.name) ? loaded.sharded : loaded.values).push_back(std::move(stored));
      continue;
    }
    for (auto& [key, state] : loaded.progress.callbacks) {
      const std::string prefix = train::callback_prefix(key);
      if (stored.name.starts_with(prefix)) state.tensors.push_back({stored.name.substr(prefix.size()), stored.tensor});
    }
  }
  return loaded;
}

/// Whether this process reads a part of a checkpoint, other processes the rest.
bool reads_part(const train::ModelSetup& setup, Model::Load what) {
  return what == Model::Load::all && setup.processes != nullptr && setup.shards_optimizer();
}

/// Loads one checkpoint. On an error the model is unchanged, or only built. Processes with shards of the optimizer state all call it.
Model::Position load_checkpoint(Model::State& s, const train::CheckpointFile& checkpoint, Model::Load what) {
  const bool all = what == Model::Load::all;
  const bool is_part = reads_part(s.setup, what);
  LoadedCheckpoint loaded;
  std::exception_ptr failure;
  try {
    loaded = read_checkpoint(s, checkpoint, what);
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  // Each process has checked a part: they take this checkpoint if none has found damage.
  if (is_part) train::agree_on_checkpoint(*s.setup.processes, &checkpoint, failure);
  if (failure != nullptr) std::rethrow_exception(failure);
  if (all) {
    s.parameters.make_optimizer_state();
    s.parameters.reset_loss_scale();
  }
  for (const NamedTensor& stored : loaded.values) s.parameters.store()->set(stored.name, stored.tensor);
  const train::SavedProgress& progress = loaded.progress;
  const Model::Position position{progress.epoch, progress.batch, checkpoint.seed, checkpoint.file, progress.step};
  if (all) s.progress.resume(std::move(loaded.progress));
  std::map<std::string, Tensor> sharded;
  for (NamedTensor& stored : loaded.sharded) sharded.emplace(std::move(stored.name), std::move(stored.tensor));
  if (!sharded.empty()) s.give_optimizer_state(std::move(sharded));
  if (is_part) {  // no process has it all
    s.gathered_state.clear();
    s.gathered_step = -1;
    s.loaded_state.reset();
    if (loaded.has_sharded) s.loaded_state = checkpoint;
  }
  return position;
}

}  // namespace

Model::Position Model::load(const std::string& checkpoint, Load what) {
  State& s = state_of(state_);
  s.setup.need_context();
  const bool is_part = reads_part(s.setup, what);
  bool awaited = is_part;  // other processes wait to hear what this one has found
  Position position;
  const auto take = [&](const train::CheckpointFile& candidate) {
    awaited = false;
    try {
      position = load_checkpoint(s, candidate, what);
    } catch (const train::DamagedCheckpoint&) {
      awaited = is_part;  // all of them go on to the next checkpoint
      throw;
    }
  };
  try {
    std::error_code ignored;
    if (!fs::is_directory(platform::path_of(checkpoint), ignored)) {
      take(train::read_checkpoint_file(checkpoint));
    } else if (train::take_newest(checkpoint, take).empty()) {
      throw Error(fmt::format("no checkpoint in {}: train the model first", checkpoint));
    }
  } catch (const std::exception&) {
    if (awaited) train::agree_on_checkpoint(*s.setup.processes, nullptr, std::current_exception());
    throw;
  }
  return position;
}

std::string newest_checkpoint(const std::string& folder) {
  return train::take_newest(folder, train::check_weights);
}

}  // namespace tenon
