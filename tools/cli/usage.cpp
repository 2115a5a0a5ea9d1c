// SPDX-License-Identifier: Apache-2.0
#include "cli/usage.h"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <vector>

#include "yaml/suggest.h"

namespace tenon::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// What may be meant by a name, or where to look.
std::string remedy(const std::string& name, const std::vector<std::string>& names, const std::string& command) {
  const std::string hint = yaml::did_you_mean(name, names);
  return hint.empty() ? fmt::format("; `{} --help` lists them", command) : hint;
}

/// The first command among the arguments that has the option; nullptr if none has.
const CLI::App* command_with(const std::vector<const CLI::App*>& commands, const std::string& option,
                             std::span<const char* const> arguments) {
  for (const char* const argument : arguments) {
    const auto found = std::ranges::find(commands, argument, &CLI::App::get_name);
    if (found != commands.end()) return (*found)->get_option_no_throw(option) == nullptr ? nullptr : *found;
  }
  return nullptr;
}

}  // namespace

std::string explain_usage(const CLI::App& app, std::span<const char* const> arguments) {
  const CLI::App* command = &app;
  std::string typed = app.get_name();
  for (const char* const text : arguments) {
    const std::string argument = text;
    const std::vector<const CLI::App*> commands = commands_of(*command);
    const bool is_short = argument.size() > 1 && argument[0] == '-' && std::isalpha(static_cast<unsigned char>(argument[1])) != 0;
    if (argument.starts_with("--") || is_short) {
      const std::string name = is_short ? argument.substr(0, 2) : argument.substr(0, argument.find('='));
      if (name == "--" || command->get_option_no_throw(name) != nullptr) continue;
      if (const CLI::App* later = command_with(commands, name, arguments)) {
        return fmt::format("`{}` has no option '{}'; write it after the command: `{} {} {}`", typed, name, typed, later->get_name(), name);
      }
      return fmt::format("`{}` has no option '{}'{}", typed, name, remedy(name, options_of(*command), typed));
    } else if (!commands.empty() && !argument.starts_with('-')) {
      const auto inner = std::ranges::find(commands, argument, &CLI::App::get_name);
      if (inner == commands.end())
        return fmt::format("`{}` has no command '{}'{}", typed, argument, remedy(argument, names_of(commands), typed));
      command = *inner;
      typed += " " + argument;
    }
  }
  const std::vector<std::string> commands = names_of(commands_of(*command));
  if (commands.empty()) return {};
  return fmt::format("expected a command after `{}`, got none; it is one of {}; `{} --help` describes them", typed,
                     fmt::join(commands, ", "), typed);
}

std::string explain_value(const CLI::App& app, const std::string& message) {
  std::string typed = app.get_name();
  for (const CLI::App* command = &app; !command->get_subcommands().empty();) {
    command = command->get_subcommands().front();
    typed += " " + command->get_name();
  }
  const auto explained = [&]() -> std::string {
    std::smatch found;
    if (std::regex_match(message, found, std::regex(R"((\S+): (.*) not in \{(.*)\})"))) {
      const std::string choices = std::regex_replace(found[3].str(), std::regex(","), ", ");
      return fmt::format("{}: expected one of {}, got '{}'", found[1].str(), choices, found[2].str());
    }
    if (std::regex_match(message, found, std::regex(R"((\S+): Value (.*) not in range (.*) to (.*))"))) {
      const double low = std::stod(found[3]), high = std::stod(found[4]);
      const std::string range = high < 1e300   ? fmt::format("from {} to {}", low, high)
                                : low == 0     ? "of at least 0"
                                : low < 1e-300 ? "above 0"
                                               : fmt::format("from {}", low);
      return fmt::format("{}: expected a number {}, got '{}'", found[1].str(), range, found[2].str());
    }
    if (std::regex_match(message, found, std::regex(R"(Could not convert: (\S+) = (.*))")))
      return fmt::format("{}: expected a number, got '{}'", found[1].str(), found[2].str());
    if (std::regex_match(message, found, std::regex(R"((\S+): 1 required (.*) missing)")))
      return fmt::format("{}: expected {}, got none", found[1].str(), found[2].str());
    if (std::regex_match(message, found, std::regex(R"((\S+) is required)"))) return fmt::format("expected {}, got none", found[1].str());
    if (std::regex_match(message, found, std::regex(R"(The following arguments? w\w+ not expected: (.*))")))
      return fmt::format("expected no further argument, got '{}'", found[1].str());
    return message;
  };
  return fmt::format("`{}`: {}; `{} --help` describes its options", typed, explained(), typed);
}

}  // namespace tenon::cli
