// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <fmt/core.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iterator>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "cli/standard_streams.h"
#include "cli/usage.h"
#include "loader/find.h"

namespace tenon::cli {
namespace {

int exit_code = 0;

int run(int argc, char** argv, void (*add_verbs)(CLI::App& app)) {
  CLI::App app{"Tenon, a plugin-based deep learning runtime", "tenon"};
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  app.require_subcommand(1);
  add_verbs(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const std::string mistake = explain_usage(app, std::span<const char* const>(argv, static_cast<std::size_t>(argc)).subspan(1));
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

const ExternalVerb* external_verb(int argc, const char* const* argv) {
  for (const std::string_view argument : std::span(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0)) {
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

int exec_program(const ExternalVerb& verb, char** argv) {
  const std::filesystem::path program = loader::support_folder() / verb.program;
  ::execv(program.c_str(), argv);
  print_error(
      fmt::format("`tenon {}` is the program {}, which cannot be started: {}; install all of Tenon, or build it by `tools/build release`",
                  verb.name, program.string(), std::strerror(errno)));
  return 1;
}

int run_program(int argc, char** argv, void (*add_verbs)(CLI::App& app)) {
  if (!stack_suffices()) return 1;
  open_standard_streams();
  return close_standard_output(run(argc, argv, add_verbs));
}

}  // namespace tenon::cli
