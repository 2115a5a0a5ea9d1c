// SPDX-License-Identifier: Apache-2.0
// tenon-conformance, the program of the verbs that need the conformance kit.
#include "cli/program.h"
#include "conformance/child_program.h"
#include "platform/process.h"
#include "verbs.h"

namespace {

void add_verbs(CLI::App& app) {
  tenon::cli::add_conformance_verb(app);
  tenon::cli::add_generate_docs_verb(app);
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::optional<int> code = tenon::conformance::run_as_child(argc, argv)) return *code;
  return tenon::cli::run_program(tenon::platform::command_line(argc, argv), add_verbs);
}
