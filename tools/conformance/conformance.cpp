// SPDX-License-Identifier: Apache-2.0
// tenon conformance: tests whether a backend file conforms to the plugin ABI.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

#include <tenon/error.h>

#include "cli/common.h"
#include "cli/program.h"
#include "cli/standard_streams.h"
#include "conformance/conformance.h"
#include "verbs.h"

namespace tenon::cli {
namespace {

/// Splits "threads=2".
std::pair<std::string, std::string> option_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw CLI::ValidationError("--backend-option", "expected NAME=VALUE, got '" + text + "'");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// Prints the names of the cases. An op, routine or table entry without a case is an error.
void print_list(const conformance::Options& options) {
  for (const std::string& name : conformance::case_names(options)) print(name + "\n");
  for (const std::string& gap : conformance::gaps()) {
    print_error("the conformance kit is incomplete: " + gap);
    set_exit_code(1);
  }
}

}  // namespace

void add_conformance_verb(CLI::App& app) {
  auto options = std::make_shared<conformance::Options>();
  auto backend_options = std::make_shared<std::vector<std::string>>();
  auto list = std::make_shared<bool>(false);
  CLI::App* command = add_external_verb(app, "conformance");
  options->backend_directory = installation_prefix() / "lib/tenon/backends";
  options->models = installation_prefix() / "share/tenon/models";
  options->jobs = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
  auto* backend = command->add_option("--backend", options->backend, "name of an installed backend")->capture_default_str();
  add_path(*command, "--plugin", options->plugin, "backend file")->excludes(backend);
  command->add_option("--oracle", options->oracle, "name of the backend to compare with")->capture_default_str();
  command
      ->add_option("--profile", options->profile, "cases to run; full: all; deep: all, with more random sizes and graphs (up to an hour)")
      ->check(CLI::IsMember(conformance::profiles()))
      ->capture_default_str();
  CLI::Option* models =
      add_path(*command, "--models", options->models, "profile training: folder of model definitions (default: the installed ones)");
  add_path(*command, "--data", options->data,
           "profile onnx: folder of ONNX's tests, such as /usr/share/libonnx-testdata/data of Debian's libonnx-testdata");
  command->add_option("--filter", options->filter, "run only the cases whose name matches this glob (* and ?)")->capture_default_str();
  command->add_option("--family", options->family, "run only the cases of this op family of ops.def or signature of blas.def");
  command->add_option("--seed", options->seed, "random seed of all operands")->capture_default_str();
  command->add_option("--backend-option", *backend_options, "NAME=VALUE: set an option that the backend declares; repeatable")
      ->allow_extra_args(false);
  add_path(*command, "--waivers", options->waivers,
           "YAML file of supported and waived cases (default: <stem>.conformance.yaml next to the plugin, else conformance.yaml)");
  command->add_option("--jobs", options->jobs, "number of parallel processes; the report does not depend on it")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--timeout", options->timeout_s, "time limit of a case in seconds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI::Option* budget =
      command->add_option("--budget", options->budget_s, "seconds; cases that have not run by then are not run, and the exit code is 1")
          ->check(CLI::PositiveNumber);
  add_format(*command, options->format, {"text", "json", "junit", "html"});
  add_path(*command, "--out", options->out, "report file (default: standard output)");
  command->add_flag("--list", *list, "print the names of the cases without running them");
  command->add_flag("--in-process", options->in_process, "run without child processes, for debuggers and to see what the backend prints")
      ->excludes(budget);
  command->callback([options, models, backend_options, list] {
    const char* size = std::getenv("TENON_TEST_SIZE");
    options->models_named = models->count() > 0;
    options->small = size != nullptr && std::string(size) == "small";
    for (const std::string& text : *backend_options) options->options.push_back(option_of(text));
    if (*list) {
      print_list(*options);
    } else {
      set_exit_code(conformance::run_conformance(*options));
    }
  });
}

}  // namespace tenon::cli
