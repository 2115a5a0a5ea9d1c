// SPDX-License-Identifier: Apache-2.0
// Checkpoints: <name>.safetensors holds the tensors, <name>.yaml describes them and is written last.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <tenon/model.h>
#include <tenon/safetensors.h>

#include "io/atomic_file.h"
#include "train/model_state.h"
#include "yaml/reader.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr const char* format_name = "tenon-checkpoint-1";

/// The content of a checkpoint's YAML file.
struct Header {
  std::string weights;  ///< absolute path of the safetensors file
  std::string optimizer;
  std::vector<std::int64_t> sample;
  std::uint64_t seed = 0, size_bytes = 0;
  train::SavedProgress progress;  ///< without the tensors of callbacks
};

/// A YAML text in double quotes.
std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      all += fmt::format("\\x{:02x}", c);
    } else {
      all += c;
    }
  }
  return all + "\"";
}

std::string callback_prefix(const std::string& key) {
  return "callback/" + key + "/";
}

Header read_header(const std::string& yaml_file) {
  const yaml::Node tree = yaml::load(yaml_file);
  yaml::Section section(tree);
  const std::string format = section.get("format", "");
  if (format != format_name)
    throw Error(fmt::format("{}: format is '{}', expected '{}': not a checkpoint of this version", yaml_file, format, format_name));
  Header header;
  train::SavedProgress& progress = header.progress;
  header.weights = section.require_value("weights", "a file name").as_path();
  header.size_bytes = section.require<std::uint64_t>("weights_size_bytes", "a size in bytes");
  header.optimizer = section.get("optimizer", "");
  progress.step = section.require<std::int64_t>("step", "a step number", {.lowest = 0});
  progress.epoch = section.require<std::int64_t>("epoch", "an epoch number", {.lowest = 0});
  header.seed = section.require<std::uint64_t>("seed", "a seed");
  for (const yaml::Value& value : section.require_value("sample", "a shape").items())
    header.sample.push_back(value.as_integer({.lowest = 0}));
  progress.batch = section.get<std::int64_t>("batch", 0, {.lowest = 0});
  progress.batches = section.get<std::int64_t>("batches", 0, {.lowest = 0});
  progress.means.weight = section.get<double>("weight", 0);
  if (const auto sums = section.find("sums")) {
    for (const yaml::Value& sum : sums->items()) progress.means.sums.push_back(sum.as_number());
  }
  progress.rate = section.get_optional<double>("learning_rate");
  progress.rate_scale = section.get<double>("learning_rate_scale", 1);
  if (const auto callbacks = section.find("callbacks")) {
    for (const auto& [key, numbers] : callbacks->entries()) {
      std::map<std::string, double>& own = progress.callbacks[key].numbers;  // also if it has only tensors
      for (const auto& [name, number] : numbers.entries()) own[name] = number.as_number();
    }
  }
  section.get("model", "");
  section.finish();
  std::error_code code;
  const std::uintmax_t size = fs::file_size(header.weights, code);
  if (code) throw Error(fmt::format("{}: its weights {} cannot be read: {}", yaml_file, header.weights, code.message()));
  if (size != header.size_bytes) {
    throw Error(fmt::format("{}: its weights {} have {} bytes, expected {}: the file is damaged or belongs to another checkpoint",
                            yaml_file, header.weights, size, header.size_bytes));
  }
  return header;
}

/// The keys that only some checkpoints have. Numbers are written so that reading restores the same bits.
std::string optional_lines(const train::SavedProgress& s, const std::map<std::string, CallbackState>& callbacks) {
  std::string text;
  if (s.batch > 0) {
    text += fmt::format("batch: {}\nbatches: {}\n", s.batch, s.batches);
    // After a non-finite loss the sums are not finite either; a resumed run restarts its means.
    if (std::all_of(s.means.sums.begin(), s.means.sums.end(), [](double sum) { return std::isfinite(sum); })) {
      text += fmt::format("weight: {}\nsums: [{}]\n", s.means.weight, fmt::join(s.means.sums, ", "));
    }
  }
  if (s.rate) text += fmt::format("learning_rate: {}\n", *s.rate);
  if (s.rate_scale != 1) text += fmt::format("learning_rate_scale: {}\n", s.rate_scale);
  if (!callbacks.empty()) text += "callbacks:\n";
  for (const auto& [key, state] : callbacks) {
    text += fmt::format("  {}: {{", quoted(key));
    const char* comma = "";
    for (const auto& [name, number] : state.numbers) {
      text += fmt::format("{}{}: {}", comma, quoted(name), number);
      comma = ", ";
    }
    text += "}\n";
  }
  return text;
}

/// The backup of a checkpoint's weights while a checkpoint of the same name is written.
fs::path backup_of(const fs::path& folder, const std::string& name) {
  return folder / (name + ".old.safetensors");
}

/// Called before the weights of a checkpoint are overwritten: links them under a second name and points the YAML to it, so that the old
/// checkpoint stays valid until the YAML of the new one replaces it. An incomplete checkpoint is not preserved.
void preserve_weights(const fs::path& folder, const std::string& name, const fs::path& weights) {
  const std::string yaml = (folder / (name + ".yaml")).string();
  std::string text;
  try {
    if (fs::path(read_header(yaml).weights).filename() != weights.filename()) return;
    const io::OpenFile file = io::open_for_reading(yaml);
    text.resize(file.size_bytes);
    io::read_exactly(file.descriptor, yaml, text.data(), text.size());
  } catch (const Error&) {
    return;
  }
  const fs::path backup = backup_of(folder, name);
  std::error_code code;
  fs::remove(backup, code);
  fs::create_hard_link(weights, backup, code);
  if (code) fs::copy_file(weights, backup, fs::copy_options::overwrite_existing);  // the file system has no hard links
  const std::string line = "\nweights: ";
  const std::size_t begin = text.find(line) + line.size();
  text.replace(begin, text.find('\n', begin) - begin, quoted(backup.filename().string()));
  io::write_atomically(yaml, text);
}

}  // namespace

void Model::save(const std::string& folder, const std::string& name) const {
  const State& s = state_of(state_);
  if (!s.parameters.built()) throw Error("save: the model has no parameters yet; call build() or fit() first");
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) throw Error(fmt::format("save: folder {} cannot be created: {}", folder, code.message()));
  std::vector<NamedTensor> tensors;
  for (const auto& [key, tensor] : s.parameters.store()->all()) {
    // Accumulated gradients are not saved: training resumes after a complete step.
    if (!is_training_state(key) || key.starts_with("optimizer/")) tensors.push_back({key, tensor});
  }
  const std::map<std::string, CallbackState> callbacks = s.callback_states();
  for (const auto& [key, state] : callbacks) {
    for (const NamedTensor& kept : state.tensors) tensors.push_back({callback_prefix(key) + kept.name, kept.tensor});
  }
  const train::SavedProgress& progress = s.progress.saved();
  const fs::path weights = fs::path(folder) / (name + ".safetensors");
  preserve_weights(folder, name, weights);
  save_safetensors(weights.string(), tensors, {{"format", format_name}});
  const std::string text = fmt::format(
      "format: {}\nmodel: {}\nweights: {}\nweights_size_bytes: {}\nsample: [{}]\noptimizer: {}\nepoch: {}\nstep: {}\nseed: {}\n{}",
      format_name, quoted(s.setup.definition.name), quoted(weights.filename().string()), fs::file_size(weights),
      fmt::join(s.parameters.sample(), ", "), name_of(s.setup.options.optimizer.kind), progress.epoch, progress.step,
      s.setup.need_context().config().seed, optional_lines(progress, callbacks));
  io::write_atomically((fs::path(folder) / (name + ".yaml")).string(), text);
  fs::remove(backup_of(folder, name), code);
}

Model::Position Model::load(const std::string& yaml_file, Load what) {
  State& s = state_of(state_);
  s.setup.need_context();
  Header header = read_header(yaml_file);
  const Safetensors file = load_safetensors(header.weights);
  build(Shape(std::span<const std::int64_t>(header.sample)));
  const bool all = what == Load::all;
  // Check everything before changing anything.
  const auto misfit = [&](const std::string& reason) {
    throw Error(fmt::format("{}: belongs to another model: {}; use the model.yaml that it was saved with", yaml_file, reason));
  };
  std::vector<const NamedTensor*> taken;
  std::map<std::string, std::pair<DType, Shape>> expected = s.parameters.types(all);
  bool has_state = false;
  for (const NamedTensor& stored : file.tensors) {
    if (stored.name.starts_with("callback/")) {
      for (auto& [key, state] : header.progress.callbacks) {
        const std::string prefix = callback_prefix(key);
        if (stored.name.starts_with(prefix)) state.tensors.push_back({stored.name.substr(prefix.size()), stored.tensor});
      }
      continue;
    }
    if (!all && is_training_state(stored.name)) continue;
    if (train::is_loss_scale(stored.name)) {  // the checkpoint may have been saved with another precision
      if (!s.setup.scales_loss()) continue;
      expected[stored.name] = {stored.name == train::loss_scale_name ? DType::f32 : DType::i64, Shape{}};
      taken.push_back(&stored);
      continue;
    }
    has_state = has_state || is_training_state(stored.name);
    if (!expected.contains(stored.name)) {
      misfit(fmt::format("it has a parameter '{}' {}, which this model does not have", stored.name, stored.tensor.str()));
    }
    taken.push_back(&stored);
  }
  for (const auto& [name, type] : expected) {
    const Tensor* stored = file.find(name);
    const std::string own = name_of(type.first) + type.second.str();
    if (stored == nullptr) {
      if (is_training_state(name) && !has_state && header.progress.step == 0) continue;  // saved before the first step: the state is zero
      misfit(fmt::format("it does not have parameter '{}' {}", name, own));
    }
    if (stored->dtype() != type.first || !(stored->shape() == type.second)) {
      misfit(fmt::format("expected parameter '{}' {}, got {}", name, own, stored->str()));
    }
  }
  if (const char* own = name_of(s.setup.options.optimizer.kind); all && header.optimizer != own) {
    misfit(fmt::format("it was trained with optimizer {}, this run uses {}", header.optimizer, own));
  }
  if (all) {
    s.parameters.make_optimizer_state();
    s.parameters.reset_loss_scale();
  }
  for (const NamedTensor* stored : taken) s.parameters.store()->set(stored->name, stored->tensor);
  const Position position{header.progress.epoch, header.progress.batch, header.seed};
  if (all) s.progress.resume(std::move(header.progress));
  return position;
}

std::string newest_checkpoint(const std::string& folder) {
  std::string newest;
  std::int64_t highest = -1;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, code)) {
    if (entry.path().extension() != ".yaml") continue;
    try {
      const Header header = read_header(entry.path().string());
      if (header.progress.step > highest) {
        highest = header.progress.step;
        newest = entry.path().string();
      }
    } catch (const Error&) {
      // An incomplete checkpoint or another YAML file is not a candidate. Loading it by name reports the error.
    }
  }
  return newest;
}

}  // namespace tenon
