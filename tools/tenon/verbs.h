// tenon/verbs.h - the verbs of the command line: one file each, each adds its subcommand.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <tenon/config.h>

namespace CLI {
class App;
}

namespace tenon::cli {

/// What every verb takes: --config, --device, --plugin, --set, and the configuration that follows from them.
struct Common {
  std::string config_file;
  std::string device;
  std::vector<std::filesystem::path> plugins;
  std::vector<std::string> sets;  ///< key=value

  void add_to(CLI::App& app);
  /// Keys of the configuration that the command line gave.
  std::vector<ConfigOverride> overrides() const;
  Config resolve(const std::vector<Config>& layers = {}) const;
};

/// The folder that has bin/ with this program, share/ and lib/: where it was installed, or the build tree. Empty where the system does not
/// tell.
std::filesystem::path installation_prefix();

// Each verb's callback returns normally for success and throws for failure, or sets the exit code.
void set_exit_code(int code);

void add_train_verbs(CLI::App& app);  ///< train, eval, predict, summary
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
void add_reference_verb(CLI::App& app);

}  // namespace tenon::cli
