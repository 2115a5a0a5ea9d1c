// SPDX-License-Identifier: Apache-2.0
// cli/program.h - the programs of the command line: `tenon`, and those that it starts for verbs that need more than the others.
#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
}

namespace tenon::cli {

/// A verb of the program lib/tenon/<program>, which takes the same command line as `tenon`.
struct ExternalVerb {
  const char *name, *description, *program;
};

inline constexpr ExternalVerb external_verbs[] = {
    {"conformance", "test a backend file against the plugin ABI, case by case", "tenon-conformance"},
    {"generate-docs", "write the reference pages of ops and BLAS routines, ops.md and blas.md", "tenon-conformance"},
    {"bench", "measure performance, compared with peers that are installed", "tenon-bench"},
    {"bandwidth", "measure the bandwidth of memory and files, also as a percentage of the memory's theoretical peak", "tenon-bench"},
};

/// The verb of a command line if it is an external one, else nullptr. The first of the arguments is the program's name, here and below.
const ExternalVerb* external_verb(std::span<const std::string> arguments);

/// Adds the verb with its description: its program adds options to it, `tenon` lists it.
CLI::App* add_external_verb(CLI::App& app, const std::string& name);
void add_external_verbs(CLI::App& app);

/// Replaces this process by the verb's program, with the same arguments. Returns the exit code, after a message, only if that fails.
int exec_program(const ExternalVerb& verb, std::span<const std::string> arguments);

/// Runs the verb that the command line names, or prints what is wrong with it. Returns the exit code of the process: 0 success, 1 failure
/// (the message says why), 2 usage error.
int run_program(std::span<const std::string> arguments, void (*add_verbs)(CLI::App& app));

/// Sets the exit code of the process. A verb's callback returns on success, throws on failure, or calls this.
void set_exit_code(int code);

}  // namespace tenon::cli
