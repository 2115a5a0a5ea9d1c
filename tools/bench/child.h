// SPDX-License-Identifier: Apache-2.0
// bench/child.h - peers that run as child processes.
#pragma once

#include <string>
#include <vector>

namespace tenon::bench {

struct ChildResult {
  int exit_code = 0;   ///< 127: program not found
  std::string output;  ///< what it wrote to stdout
};

/// The path of a script of peers/.
std::string peer_script(const std::string& name);

/// Runs a program and waits for it. Its stderr is inherited.
ChildResult run_child(const std::vector<std::string>& command);

}  // namespace tenon::bench
