// Checkpoints: <name>.safetensors holds the numbers, <name>.yaml says what they belong to and is written last.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include <tenon/model.h>
#include <tenon/safetensors.h>

#include "config/yaml_reader.h"
#include "io/atomic_file.h"
#include "train/model_state.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr const char* format_name = "tenon-checkpoint-1";

/// What the YAML of a checkpoint says.
struct Header {
  std::string weights;  ///< absolute path of the safetensors file
  std::string optimizer;
  std::vector<std::int64_t> sample;
  std::int64_t step = 0, epoch = 0;
  std::uint64_t seed = 0, size_bytes = 0;
};

Header read_header(const std::string& yaml_file) {
  const config::Node tree = config::load_yaml(yaml_file);
  config::Section section(tree);
  const std::string format = section.get("format", "");
  if (format != format_name)
    throw Error(fmt::format("{}: format is '{}', wanted '{}': this is no checkpoint of this version", yaml_file, format, format_name));
  Header header;
  header.weights = section.require_value("weights", "a file name").as_path();
  header.size_bytes = section.require<std::uint64_t>("weights_size_bytes", "a size in bytes");
  header.optimizer = section.get("optimizer", "");
  header.step = section.require<std::int64_t>("step", "a step number", {.lowest = 0});
  header.epoch = section.require<std::int64_t>("epoch", "an epoch number", {.lowest = 0});
  header.seed = section.require<std::uint64_t>("seed", "a seed");
  for (const config::Value& value : section.require_value("sample", "a shape").items())
    header.sample.push_back(value.as_integer({.lowest = 0}));
  section.get("model", "");
  section.finish();
  std::error_code code;
  const std::uintmax_t size = fs::file_size(header.weights, code);
  if (code) throw Error(fmt::format("{}: its weights {} cannot be read: {}", yaml_file, header.weights, code.message()));
  if (size != header.size_bytes) {
    throw Error(fmt::format("{}: its weights {} have {} bytes, wanted {}: the file is damaged or belongs to another checkpoint", yaml_file,
                            header.weights, size, header.size_bytes));
  }
  return header;
}

}  // namespace

void Model::save(const std::string& folder, const std::string& name, const Position& position) const {
  const State& s = *state_;
  if (!s.sample) throw Error("save: the model has no parameters yet; build() or fit it first");
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) throw Error(fmt::format("save: folder {} cannot be made: {}", folder, code.message()));
  std::vector<NamedTensor> tensors;
  for (const auto& [key, tensor] : s.parameters->all()) tensors.push_back({key, tensor});
  const fs::path weights = fs::path(folder) / (name + ".safetensors");
  save_safetensors(weights.string(), tensors, {{"format", format_name}});
  std::string sample;
  for (const std::int64_t d : *s.sample) sample += fmt::format("{}{}", sample.empty() ? "" : ", ", d);
  const std::string text = fmt::format(
      "format: {}\nmodel: \"{}\"\nweights: {}\nweights_size_bytes: {}\nsample: [{}]\noptimizer: {}\nepoch: {}\nstep: {}\nseed: {}\n",
      format_name, s.definition.name, weights.filename().string(), fs::file_size(weights), sample, name_of(s.compiled.optimizer.kind),
      position.epoch, s.step, position.seed);
  io::write_atomically((fs::path(folder) / (name + ".yaml")).string(), text);
}

Model::Position Model::load(const std::string& yaml_file) {
  State& s = *state_;
  s.need_context();
  const Header header = read_header(yaml_file);
  const Safetensors file = load_safetensors(header.weights);
  build(Shape(std::span<const std::int64_t>(header.sample)));
  // Everything is compared before anything is changed.
  const auto misfit = [&](const std::string& what) {
    throw Error(fmt::format("{}: belongs to another model: {}; give the model.yaml it was made with", yaml_file, what));
  };
  for (const NamedTensor& stored : file.tensors) {
    if (!s.parameters->has(stored.name))
      misfit(fmt::format("it has a parameter '{}' {}, this model has none of that name", stored.name, stored.tensor.str()));
  }
  for (const auto& [name, tensor] : s.parameters->all()) {
    const Tensor* stored = file.find(name);
    if (stored == nullptr) misfit(fmt::format("parameter '{}' {} is not in it", name, tensor.str()));
    if (stored->dtype() != tensor.dtype() || !(stored->shape() == tensor.shape())) {
      misfit(fmt::format("parameter '{}' is {} there, {} here", name, stored->str(), tensor.str()));
    }
  }
  if (header.optimizer != name_of(s.compiled.optimizer.kind)) {
    misfit(fmt::format("it was trained with optimizer {}, this run uses {}", header.optimizer, name_of(s.compiled.optimizer.kind)));
  }
  for (const NamedTensor& stored : file.tensors) s.parameters->set(stored.name, stored.tensor);
  s.step = header.step;
  s.epochs_done = header.epoch;
  return {header.epoch, header.seed};
}

std::string newest_checkpoint(const std::string& folder) {
  std::string newest;
  std::int64_t highest = -1;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, code)) {
    if (entry.path().extension() != ".yaml") continue;
    try {
      const Header header = read_header(entry.path().string());
      if (header.step > highest) {
        highest = header.step;
        newest = entry.path().string();
      }
    } catch (const Error&) {
      // Half a checkpoint, or another YAML file: not a candidate. Loading it by name tells what is wrong with it.
    }
  }
  return newest;
}

}  // namespace tenon
