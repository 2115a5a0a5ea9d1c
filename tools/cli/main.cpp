// SPDX-License-Identifier: Apache-2.0
// The command line.
#include <string>
#include <vector>

#include "cli/program.h"
#include "cli/verbs.h"
#include "platform/process.h"

namespace tenon::cli {
namespace {

void add_verbs(CLI::App& app) {
  add_train_verbs(app);
  add_predict_verb(app);
  add_generate_verb(app);
  add_weights_verb(app);
  add_export_verb(app);
  add_quantize_verb(app);
  add_onnx_verbs(app);
  add_explain_verb(app);
  add_gradcheck_verb(app);
  add_backends_verb(app);
  add_devices_verb(app);
  add_doctor_verb(app);
  add_caps_verb(app);
  add_config_verb(app);
  add_demo_verb(app);
  add_new_backend_verb(app);
  add_external_verbs(app);
}

}  // namespace
}  // namespace tenon::cli

int main(int argc, char** argv) {
  using namespace tenon::cli;
  const std::vector<std::string> arguments = tenon::platform::command_line(argc, argv);
  if (const ExternalVerb* const verb = external_verb(arguments)) return exec_program(*verb, arguments);
  return run_program(arguments, add_verbs);
}
