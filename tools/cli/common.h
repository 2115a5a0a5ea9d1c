// SPDX-License-Identifier: Apache-2.0
// cli/common.h - the options that verbs have in common, and the tree that the program is part of.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <tenon/config.h>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tenon::cli {

/// The help of --trust.
inline constexpr const char* trust_help =
    "let the training file set backends.search, backends.probe and backends.options, which decide what code runs";

/// The options that every verb has (--config, --device, --plugin, --set, --trust), and the configuration that results from them.
struct Common {
  std::string config_file;
  std::string device;
  std::vector<std::filesystem::path> plugins;
  std::vector<std::string> sets;  ///< key=value
  bool trust = false;             ///< a train.yaml may add backend folders

  void add_to(CLI::App& app);
  /// The options as a command line, for another process of this program.
  std::vector<std::string> arguments() const;
  /// The configuration keys that other options than --set set.
  std::vector<ConfigOverride> overrides() const;
  /// Those of --set.
  std::vector<ConfigOverride> set_overrides() const;
  /// The configuration of a command without a training file.
  Config resolve() const;
  /// That of a command with one, whose definition --set has changed already.
  Config resolve_over(const Config& definition) const;
};

/// Adds an option whose value is a path: CLI11 alone would take its UTF-8 for text in the code page of Windows.
CLI::Option* add_path(CLI::App& command, const std::string& name, std::filesystem::path& out_path, const std::string& description);

/// Adds --format with these choices; the first is the default.
void add_format(CLI::App& command, std::string& format, const std::vector<std::string>& choices);

/// The folder that contains bin/, share/ and lib/ of this program: the installation prefix or the build tree. Empty if unknown.
std::filesystem::path installation_prefix();

}  // namespace tenon::cli
