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

/// Whether a command has an option of that name.
bool has_option(const CLI::App& command, const std::string& name) {
  return command.get_option_no_throw(name) != nullptr;
}

/// The command that the arguments name, up to the first one that has the option.
struct LaterCommand {
  const CLI::App* command;
  std::string typed;
};
LaterCommand command_with(const LaterCommand& before, const std::string& option, std::span<const char* const> arguments) {
  LaterCommand later = before;
  for (const char* const argument : arguments) {
    const std::vector<const CLI::App*> commands = commands_of(*later.command);
    const auto found = std::ranges::find(commands, argument, &CLI::App::get_name);
    if (found == commands.end()) continue;
    later = {*found, later.typed + " " + argument};
    if (has_option(**found, option)) break;
  }
  return later;
}

/// About an option that a command does not have; `rest` are the arguments that follow it.
std::string explain_option(const LaterCommand& at, const std::string& argument, const std::string& name,
                           std::span<const char* const> rest) {
  const std::vector<std::string> own = options_of(*at.command);
  const std::string text = fmt::format("`{}` has no option '{}'", at.typed, name);
  if (name.size() == 2 && argument.size() > 2) {  // `-device` is read as `-d` with the value `evice`
    const std::string word = argument.substr(0, argument.find('='));
    if (const std::string hint = yaml::did_you_mean(word, own); !hint.empty())
      return fmt::format("`{}` has no option '{}'{}", at.typed, word, hint);
  }
  if (const std::string hint = yaml::did_you_mean(name, own); !hint.empty()) return text + hint;
  const LaterCommand later = command_with(at, name, rest);
  if (later.command == at.command) return fmt::format("{}; `{} --help` lists them", text, at.typed);
  if (has_option(*later.command, name)) return fmt::format("{}; write it after the command: `{} {}`", text, later.typed, name);
  return fmt::format("{}; options follow the command: `{} --help` lists them", text, later.typed);
}

}  // namespace

std::string explain_usage(const CLI::App& app, std::span<const char* const> arguments) {
  LaterCommand at{&app, app.get_name()};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = arguments[i];
    if (argument == "--") break;  // what follows are no options
    const std::vector<const CLI::App*> commands = commands_of(*at.command);
    const bool is_short = argument.size() > 1 && argument[0] == '-' && std::isalpha(static_cast<unsigned char>(argument[1])) != 0;
    if (argument.starts_with("--") || is_short) {
      const std::string name = is_short ? argument.substr(0, 2) : argument.substr(0, argument.find('='));
      const CLI::Option* const option = at.command->get_option_no_throw(name);
      if (option == nullptr) return explain_option(at, argument, name, arguments.subspan(i + 1));
      if (option->get_items_expected_max() > 0 && argument == name) ++i;  // its value, which may begin with '-'
    } else if (!commands.empty() && !argument.starts_with('-')) {
      const auto inner = std::ranges::find(commands, argument, &CLI::App::get_name);
      if (inner == commands.end())
        return fmt::format("`{}` has no command '{}'{}", at.typed, argument, remedy(argument, names_of(commands), at.typed));
      at = {*inner, at.typed + " " + argument};
    }
  }
  const std::vector<std::string> commands = names_of(commands_of(*at.command));
  if (commands.empty()) return {};
  return fmt::format("expected a command after `{}`, got none; it is one of {}; `{} --help` describes them", at.typed,
                     fmt::join(commands, ", "), at.typed);
}

std::string explain_value(const CLI::App& app, const std::string& message) {
  std::string typed = app.get_name();
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
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
      // Some versions of CLI11 write the lowest positive number as 0.
      const CLI::Option* const option = command->get_option_no_throw(found[1]);
      const bool is_positive = option != nullptr && option->get_type_name().find(":POSITIVE") != std::string::npos;
      const std::string range = high < 1e300  ? fmt::format("from {} to {}", low, high)
                                : is_positive ? "above 0"
                                : low == 0    ? "of at least 0"
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
