// SPDX-License-Identifier: Apache-2.0
#include "cli/common.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>

#include "loader/find.h"
#include "platform/path.h"
#include "yaml/tree.h"

namespace tenon::cli {

void Common::add_to(CLI::App& app) {
  app.add_option("--config", config_file, "configuration file (default: $TENON_CONFIG)")->type_name("FILE");
  app.add_option("--device", device, "device to run on: auto, cpu, gpu, openblas:0, /device:GPU:0, ...")->type_name("NAME");
  app.add_option_function<std::vector<std::string>>(
         "--plugin",
         [this](const std::vector<std::string>& paths) { std::ranges::transform(paths, std::back_inserter(plugins), platform::path_of); },
         "backend file, or folder of backend files, searched before all others")
      ->type_name("PATH");
  app.add_flag("--trust", trust, trust_help);
  app.add_option("--set", sets, "override a YAML key: key.path=value")->type_name("KEY=VALUE");
}

std::vector<std::string> Common::arguments() const {
  std::vector<std::string> list;
  if (!config_file.empty()) list.push_back("--config=" + config_file);
  if (!device.empty()) list.push_back("--device=" + device);
  for (const std::filesystem::path& plugin : plugins) list.push_back("--plugin=" + platform::text_of(plugin));
  if (trust) list.push_back("--trust");
  for (const std::string& text : sets) list.push_back("--set=" + text);
  return list;
}

std::vector<ConfigOverride> Common::overrides() const {
  std::vector<ConfigOverride> list;
  if (!device.empty()) list.push_back({"device", device, "--device " + device, true});
  return list;
}

std::vector<ConfigOverride> Common::set_overrides() const {
  std::vector<ConfigOverride> list;
  for (const std::string& text : sets) {
    const yaml::Assignment assignment = yaml::parse_assignment(text);
    list.push_back({assignment.key, assignment.value, "--set " + text});
  }
  return list;
}

Config Common::resolve() const {
  ConfigSources sources;
  sources.file = config_file;
  sources.command_line = overrides();
  for (ConfigOverride& change : set_overrides()) sources.command_line.push_back(std::move(change));
  return resolve_config(sources);
}

Config Common::resolve_over(const Config& definition) const {
  ConfigSources sources;
  sources.file = config_file;
  sources.layers = {definition};
  sources.trust_layers = trust;
  sources.command_line = overrides();
  return resolve_config(sources);
}

CLI::Option* add_path(CLI::App& command, const std::string& name, std::filesystem::path& out_path, const std::string& description) {
  return command.add_option_function<std::string>(
      name, [&out_path](const std::string& text) { out_path = platform::path_of(text); }, description);
}

void add_format(CLI::App& command, std::string& format, const std::vector<std::string>& choices) {
  format = choices.front();
  command.add_option("--format", format, "output format")->check(CLI::IsMember(choices))->capture_default_str();
}

std::filesystem::path installation_prefix() {
  return loader::support_folder().parent_path().parent_path();
}

}  // namespace tenon::cli
