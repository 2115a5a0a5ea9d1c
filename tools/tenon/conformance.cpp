// tenon conformance: whether a backend file keeps the contract.
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "conformance/conformance.h"
#include "tenon/verbs.h"

namespace tenon::cli {
namespace {

/// A folder of this installation, where the command was installed or built.
std::filesystem::path own(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : self.parent_path().parent_path() / folder;
}

}  // namespace

void add_conformance_verb(CLI::App& app) {
  auto options = std::make_shared<conformance::Options>();
  CLI::App* command = app.add_subcommand("conformance", "prove that a backend file keeps the contract, case by case");
  options->backend_directory = own("lib/tenon/backends");
  options->models = own("share/tenon/models");
  auto* backend =
      command->add_option("--backend", options->backend, "name of a backend that is beside this program")->capture_default_str();
  command->add_option("--plugin", options->plugin, "file of a backend")->excludes(backend);
  command->add_option("--oracle", options->oracle, "name of the backend that is right")->capture_default_str();
  command->add_option("--profile", options->profile, "core, ops, training, blas, onnx or full")
      ->check(CLI::IsMember({"core", "ops", "training", "blas", "onnx", "full"}))
      ->capture_default_str();
  command->add_option("--models", options->models, "profile training: folder of model definitions; default: those beside this program");
  command->add_option("--vectors", options->vectors, "profile onnx: file of node vectors that tests/conformance/onnx/convert.py wrote");
  command->add_option("--filter", options->filter, "only cases whose name matches this glob (* and ?)")->capture_default_str();
  command->add_option("--room", options->room, "only cases of this room of ops.def or signature of blas.def");
  command->add_option("--seed", options->seed, "of all operands")->capture_default_str();
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  command->add_option("--out", options->out, "file for the report; default: standard output");
  command->add_option("--timeout", options->timeout_s, "seconds a case may take")->capture_default_str();
  command->add_flag("--in-process", options->in_process, "no child processes: for debuggers");
  command->callback([options] {
    const char* size = std::getenv("TENON_TEST_SIZE");
    options->small = size != nullptr && std::string(size) == "small";
    set_exit_code(conformance::run_conformance(*options));
  });
}

}  // namespace tenon::cli
