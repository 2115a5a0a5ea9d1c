// SPDX-License-Identifier: Apache-2.0
// child_program.h - the kit's child processes are the program that runs the kit, started with other arguments (ADR 65).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/backend.h>

#include "case.h"
#include "conformance.h"

namespace tenon::conformance {

/// What a program has in addition to the kit, in its children as well.
struct ChildProgram {
  std::vector<std::pair<std::string, tenon_backend_query_fn>> registered;  ///< as Options::registered
  /// Cases of its own for such a request; empty: those of the kit.
  std::function<std::vector<Case>(const Options&)> cases;
};

/// To be called first in main() of a program that calls judge(). In a child process it does the work and returns the exit code; elsewhere
/// it returns nothing.
std::optional<int> run_as_child(int argc, const char* const* argv, const ChildProgram& program = {});

}  // namespace tenon::conformance
