// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iterator>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/standard_streams.h"
#include "cli/usage.h"
#include "loader/find.h"
#include "platform/path.h"
#include "platform/process.h"

namespace tenon::cli {
namespace {

int exit_code = 0;

int run(std::span<const std::string> arguments, void (*add_verbs)(CLI::App& app)) {
  CLI::App app{"Tenon, a plugin-based deep learning runtime", "tenon"};
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  app.allow_windows_style_options(false);  // a path may begin with a slash
  app.require_subcommand(1);
  add_verbs(app);
  std::vector<const char*> words;
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& e) {
    const std::string mistake = explain_usage(app, std::span<const char* const>(words).subspan(1));
    if (e.get_exit_code() != 0) {
      print_error(mistake.empty() ? explain_value(app, e.what()) : mistake);
      return 2;
    }
    std::ostringstream help;
    app.exit(e, help);
    print(help.str());
    return 0;
  } catch (const std::bad_alloc&) {
    print_error("out of memory; use smaller batches or data, or raise the limit of the process (`ulimit -v`)");
    return 1;
  } catch (const std::exception& e) {
    print_error(e.what());
    return 1;
  }
  return exit_code;
}

}  // namespace

void set_exit_code(int code) {
  exit_code = code;
}

const ExternalVerb* external_verb(std::span<const std::string> arguments) {
  for (const std::string_view argument : arguments.subspan(arguments.empty() ? 0 : 1)) {
    if (argument.starts_with('-')) continue;
    const ExternalVerb* const found = std::ranges::find(external_verbs, argument, &ExternalVerb::name);
    return found == std::end(external_verbs) ? nullptr : found;
  }
  return nullptr;
}

CLI::App* add_external_verb(CLI::App& app, const std::string& name) {
  return app.add_subcommand(name, std::ranges::find(external_verbs, name, &ExternalVerb::name)->description);
}

void add_external_verbs(CLI::App& app) {
  for (const ExternalVerb& verb : external_verbs) add_external_verb(app, verb.name);
}

int exec_program(const ExternalVerb& verb, std::span<const std::string> arguments) {
  const std::filesystem::path program = loader::support_folder() / verb.program;
  const std::string reason = platform::continue_as(program, arguments.subspan(1));
  print_error(
      fmt::format("`tenon {}` is the program {}, which cannot be started: {}; install all of Tenon, or build it by `tools/build release`",
                  verb.name, platform::text_of(program), reason));
  return 1;
}

int run_program(std::span<const std::string> arguments, void (*add_verbs)(CLI::App& app)) {
  if (!stack_suffices()) return 1;
  open_standard_streams();
  return close_standard_output(run(arguments, add_verbs));
}

}  // namespace tenon::cli
