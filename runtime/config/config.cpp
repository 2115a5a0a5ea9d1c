// SPDX-License-Identifier: Apache-2.0
#include <tenon/config.h>

#include <fmt/format.h>
#include <tenon/error.h>

#include "config/config_table.h"
#include "platform/system.h"

namespace tenon {
namespace {

using config::Row;
using config::SubKeys;

std::string one_line(std::string text) {  // an origin is printed in a YAML comment
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

/// Writes YAML line by line, opening the nested maps of each path as needed.
class Writer {
 public:
  /// Writes a comment line at the depth of `words`.
  void note(const std::vector<std::string>& words, const std::string& comment) {
    open(words);
    text_ += std::string(2 * (words.size() - 1), ' ') + "# " + comment + "\n";
  }
  void value(const std::vector<std::string>& words, const std::string& yaml, const std::string& comment) {
    open(words);
    std::string line = std::string(2 * (words.size() - 1), ' ') + words.back() + ": " + yaml;
    constexpr std::size_t comment_column = 40;
    if (!comment.empty()) line += std::string(line.size() < comment_column ? comment_column - line.size() : 1, ' ') + " # " + comment;
    text_ += line + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  void open(const std::vector<std::string>& words) {
    bool same = true;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      same = same && i < open_.size() && open_[i] == words[i];
      if (!same) text_ += std::string(2 * i, ' ') + words[i] + ":\n";
    }
    open_.assign(words.begin(), words.end() - 1);
  }

  std::vector<std::string> open_;
  std::string text_;
};

const Row* row_of(const std::string& path, SubKeys& out_names) {
  for (const Row& row : config::config_table()) {
    const std::string key = row.key.path;
    if (path == key || (row.depth > 0 && path.rfind(key + ".", 0) == 0)) {
      out_names = path == key ? SubKeys() : yaml::split_path(std::string_view(path).substr(key.size() + 1));
      return out_names.size() == row.depth ? &row : nullptr;
    }
  }
  return nullptr;
}

/// A layer comes with a model, perhaps from a stranger: it does not decide which native code this process runs. Options count, since one
/// may name a vendor's libraries.
void check_layer(const Config& layer) {
  for (const auto& [key, origin] : layer.origins) {
    const bool of_code = key == "backends.search" || key == "backends.probe" || key.rfind("backends.options.", 0) == 0;
    if (!of_code || origin.kind != Origin::Kind::yaml) continue;
    throw Error(
        fmt::format("{}: key '{}': decides which native code this process runs; expected it in your own configuration (--config, "
                    "TENON_CONFIG), the environment or the command line, got it in a file that describes a model; move it there, or pass "
                    "--trust (ConfigSources::trust_layers) if you trust this file",
                    origin.text, key));
  }
}

std::string text_of(const ConfigOverride& change, const char* origin) {
  return change.text.empty() ? fmt::format("{} {}={}", origin, change.key, change.value) : change.text;
}

}  // namespace

Fallback Config::fallback_for(const std::string& op) const {
  const auto found = fallback_ops.find(op);
  return found == fallback_ops.end() ? fallback : found->second;
}

std::string Config::origin_of(const std::string& key) const {
  const auto found = origins.find(key);
  return found == origins.end() ? "default" : found->second.text;
}

std::span<const ConfigKey> config_keys() {
  static const std::vector<ConfigKey> keys = [] {
    std::vector<ConfigKey> result;
    for (const Row& row : config::config_table()) result.push_back(row.key);
    return result;
  }();
  return keys;
}

std::string config_schema() {
  Writer writer;
  for (const ConfigKey& key : config_keys()) {
    const std::vector<std::string> words = yaml::split_path(key.path);
    const std::string type = *key.range == '\0' ? key.type : fmt::format("{}: {}", key.type, key.range);
    writer.note(words, fmt::format("{} ({})", key.help, type));
    writer.value(words, key.default_value, "");
  }
  return writer.text();
}

Config config::config_from_tree(const yaml::Node& tree) {
  Config result;
  yaml::Section top(tree);
  read_config(top, result);
  top.finish();
  return result;
}

Config load_config(const std::string& path) {
  return config::config_from_tree(yaml::load(path));
}

Config config_from_text(const std::string& text, const std::string& name, const std::string& folder) {
  return config::config_from_tree(yaml::parse(text, std::make_shared<yaml::Source>(yaml::Source{name, folder, Origin::Kind::yaml})));
}

void apply_override(Config& config, const std::string& key, const std::string& value, const Origin& origin, bool literal) {
  yaml::Node root;
  yaml::assign(root, key, value, std::make_shared<yaml::Source>(yaml::Source{origin.text, "", origin.kind}), literal);
  yaml::Section top(root);
  config::read_config(top, config);
  top.finish();
}

void merge_config(Config& base, const Config& layer) {
  for (const auto& entry : layer.origins) {
    SubKeys names;
    const Row* row = row_of(entry.first, names);
    if (row == nullptr) throw Error(Status::internal, "configuration: origin '" + entry.first + "' does not match any key");
    Origin& origin = base.origins[entry.first];
    if (origin.kind > entry.second.kind) continue;
    row->copy(base, layer, names);
    origin = entry.second;
  }
}

std::string to_yaml(const Config& config, bool with_origins) {
  Writer writer;
  for (const Row& row : config::config_table()) {
    const auto values = row.show(config);
    if (values.empty()) writer.value(yaml::split_path(row.key.path), "{}", with_origins ? "default" : "");
    for (const auto& value : values) {
      std::vector<std::string> words = yaml::split_path(row.key.path);
      std::string path = row.key.path;
      for (const std::string& name : value.first) {
        words.push_back(name);
        path += "." + name;
      }
      writer.value(words, value.second, with_origins ? one_line(config.origin_of(path)) : "");
    }
  }
  return writer.text();
}

std::optional<std::string> process_environment(const char* name) {
  return platform::is_elevated() ? std::nullopt : platform::environment_variable(name);
}

Config resolve_config(const ConfigSources& sources) {
  const auto variable = [&sources](const char* name) {
    return sources.environment ? sources.environment(name).value_or("") : std::string();
  };
  Config result;
  if (!sources.file.empty()) {
    merge_config(result, load_config(sources.file));
  } else if (const std::string named = variable("TENON_CONFIG"); !named.empty()) {
    try {
      merge_config(result, load_config(named));
    } catch (const Error& problem) {
      throw Error(problem.status(), std::string("environment TENON_CONFIG: ") + problem.what());
    }
  }
  for (const Config& layer : sources.layers) {
    if (!sources.trust_layers) check_layer(layer);
    merge_config(result, layer);
  }
  const std::pair<const char*, const char*> variables[] = {
      {"TENON_DEVICE", "device"}, {"TENON_BACKEND_PROBE", "backends.probe"}, {"TENON_LOG", "logging.level"}};
  for (const auto& pair : variables) {
    const std::string value = variable(pair.first);
    if (!value.empty())
      apply_override(result, pair.second, value, {Origin::Kind::environment, std::string("environment ") + pair.first}, true);
  }
  for (const ConfigOverride& change : sources.command_line) {
    apply_override(result, change.key, change.value, {Origin::Kind::command_line, text_of(change, "--set")}, change.literal);
  }
  for (const ConfigOverride& change : sources.api) {
    apply_override(result, change.key, change.value, {Origin::Kind::api, text_of(change, "API")}, change.literal);
  }
  config::check_config(result);
  return result;
}

}  // namespace tenon
