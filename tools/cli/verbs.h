// SPDX-License-Identifier: Apache-2.0
// cli/verbs.h - the subcommands of the command line, one file each.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <tenon/config.h>

namespace CLI {
class App;
}

namespace tenon::cli {

/// The help of --trust.
inline constexpr const char* trust_help =
    "let the training file set backends.search, backends.probe and backends.options, which decide what code runs";

/// The options that every subcommand has (--config, --device, --plugin, --set, --trust), and the configuration that results from them.
struct Common {
  std::string config_file;
  std::string device;
  std::vector<std::filesystem::path> plugins;
  std::vector<std::string> sets;  ///< key=value
  bool trust = false;             ///< a train.yaml may add backend folders

  void add_to(CLI::App& app);
  /// The configuration keys set on the command line.
  std::vector<ConfigOverride> overrides() const;
  Config resolve(const std::vector<Config>& layers = {}) const;
};

/// The folder that contains this program's bin/, share/ and lib/: the installation prefix or the build tree. Empty if unknown.
std::filesystem::path installation_prefix();

/// Sets the exit code of the process. A subcommand's callback returns on success, throws on failure, or calls this.
void set_exit_code(int code);

void add_train_verbs(CLI::App& app);  ///< train, eval, summary
void add_predict_verb(CLI::App& app);
void add_weights_verb(CLI::App& app);
void add_explain_verb(CLI::App& app);
void add_gradcheck_verb(CLI::App& app);
void add_backends_verb(CLI::App& app);
void add_devices_verb(CLI::App& app);
void add_doctor_verb(CLI::App& app);
void add_caps_verb(CLI::App& app);
void add_config_verb(CLI::App& app);
void add_conformance_verb(CLI::App& app);
void add_bench_verb(CLI::App& app);
void add_demo_verb(CLI::App& app);
void add_new_backend_verb(CLI::App& app);
void add_generate_docs_verb(CLI::App& app);

}  // namespace tenon::cli
