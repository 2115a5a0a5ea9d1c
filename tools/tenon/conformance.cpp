// tenon conformance: whether a backend file keeps the contract.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include <tenon/error.h>

#include "conformance/conformance.h"
#include "tenon/output.h"
#include "tenon/verbs.h"

namespace tenon::cli {
namespace {

/// A folder of this installation, where the command was installed or built.
std::filesystem::path own(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : self.parent_path().parent_path() / folder;
}

/// "threads=2".
std::pair<std::string, std::string> knob_of(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) throw CLI::ValidationError("--knob", "wanted NAME=VALUE, got '" + word + "'");
  return {word.substr(0, equals), word.substr(equals + 1)};
}

/// What there is to run; an op, a routine or a slot that nothing judges is an error.
void print_list(const conformance::Options& options) {
  for (const std::string& name : conformance::case_names(options)) print(name + "\n");
  for (const std::string& gap : conformance::gaps()) {
    std::fprintf(stderr, "tenon: error: the kit has a gap: %s\n", gap.c_str());
    set_exit_code(1);
  }
}

}  // namespace

void add_conformance_verb(CLI::App& app) {
  auto options = std::make_shared<conformance::Options>();
  auto knobs = std::make_shared<std::vector<std::string>>();
  auto list = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("conformance", "prove that a backend file keeps the contract, case by case");
  options->backend_directory = own("lib/tenon/backends");
  options->models = own("share/tenon/models");
  options->jobs = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
  auto* backend =
      command->add_option("--backend", options->backend, "name of a backend that is beside this program")->capture_default_str();
  command->add_option("--plugin", options->plugin, "file of a backend")->excludes(backend);
  command->add_option("--oracle", options->oracle, "name of the backend that is right")->capture_default_str();
  command->add_option("--profile", options->profile, "core, ops, training, blas, onnx or full")
      ->check(CLI::IsMember({"core", "ops", "training", "blas", "onnx", "full"}))
      ->capture_default_str();
  CLI::Option* models =
      command->add_option("--models", options->models, "profile training: folder of model definitions; default: those beside this program");
  command->add_option("--vectors", options->vectors, "profile onnx: file of node vectors that tests/conformance/onnx/convert.py wrote");
  command->add_option("--filter", options->filter, "only cases whose name matches this glob (* and ?)")->capture_default_str();
  command->add_option("--room", options->room, "only cases of this room of ops.def or signature of blas.def");
  command->add_option("--seed", options->seed, "of all operands")->capture_default_str();
  command->add_option("--knob", *knobs, "NAME=VALUE: what the backend is told when it asks for this option of its own; repeatable")
      ->allow_extra_args(false);
  command->add_option("--waivers", options->waivers,
                      "YAML file of what is excused; default: <stem>.conformance.yaml beside the plugin, else conformance.yaml there");
  command->add_option("--jobs", options->jobs, "processes at a time; the report is the same")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--timeout", options->timeout_s, "seconds a case may take")->check(CLI::PositiveNumber)->capture_default_str();
  add_format(*command, options->format, {"text", "json", "junit", "html"});
  command->add_option("--out", options->out, "file for the report; default: standard output");
  command->add_flag("--list", *list, "print the names of the cases and run none");
  command->add_flag("--in-process", options->in_process, "no child processes: for debuggers, and to see what the backend prints");
  command->callback([options, models, knobs, list] {
    const char* size = std::getenv("TENON_TEST_SIZE");
    options->models_named = models->count() > 0;
    options->small = size != nullptr && std::string(size) == "small";
    for (const std::string& word : *knobs) options->knobs.push_back(knob_of(word));
    if (*list) {
      print_list(*options);
    } else {
      set_exit_code(conformance::run_conformance(*options));
    }
  });
}

}  // namespace tenon::cli
