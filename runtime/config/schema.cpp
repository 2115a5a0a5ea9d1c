// SPDX-License-Identifier: Apache-2.0
#include "config/schema.h"

#include <algorithm>

#include <fmt/format.h>
#include <tenon/config.h>
#include <tenon/error.h>

#include "config/model_yaml.h"

namespace tenon::config {
namespace {

/// A kind of thing that a file names. HEAD stands for what a train.yaml requires, NAME for the thing, KEYS for values of keys without which
/// a reader would not go on to the next.
struct Kind {
  const char* name;
  const char* file;
  const char* owner;        ///< KnownKey::owner of its keys
  const char* prefix = "";  ///< of KnownKey::path
};

const char* const head = "model: {layers: [flatten]}\ndata: {source: digits}\nloss: mse\n";
const char* const values[] = {
    "kernel_size: 1, pool_size: 1, size: 1, shape: [1], body: [flatten], parts: [[flatten]], name: leaky_relu, file: f, directory: d, "
    "schedule: exponential",
    "directory: d, best: true",  // a checkpoint has other keys then
};

const Kind kinds[] = {
    {"layer", "layers: [{NAME: {KEYS}}]\n", "layers[0] NAME"},
    {"initializer", "layers: [{dense: {units: 1, kernel_initializer: {name: NAME}}}]\n", "layers[0] dense: kernel_initializer"},
    {"source", "model: {layers: [flatten]}\nloss: mse\ndata: {source: NAME, augment: {crop: {}}}\n", "", "data."},
    {"loss", "model: {layers: [flatten]}\ndata: {source: digits}\nloss: {name: NAME}\n", "loss"},
    {"metric", "HEADmetrics: [{name: NAME}]\n", "metrics[0]"},
    {"optimizer", "HEADoptimizer: {name: NAME}\n", "optimizer"},
    {"schedule", "HEADoptimizer: {name: sgd, learning_rate: {schedule: NAME}}\n", "optimizer: learning_rate"},
    {"callback", "HEADcallbacks: [{NAME: {KEYS}}]\n", "callbacks[0] NAME"},
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) text.replace(at, what.size(), by);
  return text;
}

/// Reads the file, and its mistakes do not matter.
void read(const std::string& text) {
  try {
    if (text.starts_with("layers:")) {
      model_from_text(text);
    } else {
      train_from_text(text);
    }
  } catch (const Error&) {  // most values are missing
  }
}

/// What readers ask for in the file, with these in place of NAME and KEYS.
std::vector<yaml::KnownKey> keys_of(const std::string& file, const std::string& name, const std::string& owner, const std::string& prefix) {
  yaml::KeyRecorder recorder;
  for (const char* const given : values) read(replaced(replaced(replaced(file, "HEAD", head), "NAME", name), "KEYS", given));
  std::vector<yaml::KnownKey> keys;
  for (yaml::KnownKey& key : recorder.keys) {
    if (key.owner != owner || !key.path.starts_with(prefix)) continue;
    key.path.erase(0, prefix.size());
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<std::string> names_of(const Kind& kind) {
  yaml::KeyRecorder recorder;
  read(replaced(replaced(kind.file, "HEAD", head), "NAME", "nothing"));
  return recorder.words;
}

bool is_of_config(const yaml::KnownKey& key) {
  return std::ranges::any_of(config_keys(), [&](const ConfigKey& of) { return (std::string(of.path) + ".").starts_with(key.path + "."); });
}

std::string text_of(const SchemaBlock& block) {
  std::string text = "\n# " + (block.kind.empty() ? "" : block.kind + " ") + block.name + "\n";
  for (const yaml::KnownKey& key : block.keys) {
    std::string line = fmt::format("#   {}: {}", key.path, key.expected.empty() ? "see docs/yaml.md" : key.expected);
    if (key.required) line += "; required";
    if (!key.default_value.empty()) line += "; default " + key.default_value;
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::vector<SchemaBlock> schema_of_readers() {
  SchemaBlock train{"", "train.yaml", keys_of(std::string("HEADcheckpoint: {}\nparallel: {}\n"), "", "", "")};
  std::erase_if(train.keys, [](const yaml::KnownKey& key) {
    return is_of_config(key) || (key.path.starts_with("data.") && key.path != "data.source");
  });
  SchemaBlock model{"", "model.yaml", keys_of("layers: [flatten]\ninput: {}\nconformance: {}\n", "", "", "")};
  std::vector<SchemaBlock> blocks{train, model};
  for (const Kind& kind : kinds) {
    for (const std::string& name : names_of(kind)) {
      blocks.push_back({kind.name, name, keys_of(kind.file, name, replaced(kind.owner, "NAME", name), kind.prefix)});
    }
  }
  return blocks;
}

std::string whole_schema() {
  std::string text = config_schema();
  for (const SchemaBlock& block : schema_of_readers()) text += text_of(block);
  return text;
}

}  // namespace tenon::config
