// SPDX-License-Identifier: Apache-2.0
// The command line. Exit codes: 0 success, 1 failure (the message says why), 2 usage error.
#include <CLI/CLI.hpp>

#include <cstddef>
#include <exception>
#include <new>
#include <span>
#include <sstream>
#include <string>

#include <tenon/error.h>

#include "cli/standard_streams.h"
#include "cli/usage.h"
#include "cli/verbs.h"

namespace tenon::cli {
namespace {
int exit_code = 0;
}
void set_exit_code(int code) {
  exit_code = code;
}
namespace {

int run(int argc, char** argv) {
  CLI::App app{"Tenon, a plugin-based deep learning runtime", "tenon"};
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  app.require_subcommand(1);
  add_train_verbs(app);
  add_predict_verb(app);
  add_weights_verb(app);
  add_explain_verb(app);
  add_gradcheck_verb(app);
  add_backends_verb(app);
  add_devices_verb(app);
  add_doctor_verb(app);
  add_caps_verb(app);
  add_config_verb(app);
  add_conformance_verb(app);
  add_bench_verb(app);
  add_demo_verb(app);
  add_new_backend_verb(app);
  add_generate_docs_verb(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const std::string mistake = explain_usage(app, std::span<const char* const>(argv, static_cast<std::size_t>(argc)).subspan(1));
    if (e.get_exit_code() != 0 && !mistake.empty()) {
      print_error(mistake);
      return 2;
    }
    std::ostringstream help;
    const int code = app.exit(e, help);
    print(help.str());
    return code == 0 ? 0 : 2;
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
}  // namespace tenon::cli

int main(int argc, char** argv) {
  if (!tenon::cli::stack_suffices()) return 1;
  tenon::cli::open_standard_streams();
  return tenon::cli::close_standard_output(tenon::cli::run(argc, argv));
}
