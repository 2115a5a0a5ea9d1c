// bench/child.h - peers that are programs of their own.
#pragma once

#include <string>
#include <vector>

namespace tenon::bench {

struct ChildResult {
  int exit_code = 0;   ///< 127: the program is not there
  std::string output;  ///< what it wrote to stdout
};

/// A script of peers/: beside this program where it is installed, else in the source tree.
std::string peer_script(const std::string& name);

/// Runs a program to its end; its stderr goes to ours.
ChildResult run_child(const std::vector<std::string>& command);

}  // namespace tenon::bench
