// SPDX-License-Identifier: Apache-2.0
// bench/child.h - peers that run as child processes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/process.h"

namespace tenon::bench {

struct ChildResult {
  int exit_code = 0;   ///< 127: program not found
  std::string output;  ///< what it wrote to stdout
};

/// The path of a script of peers/.
std::string peer_script(const std::string& name);

/// Runs a program, without input, and waits for it. Its stderr is inherited.
ChildResult run_child(const std::vector<std::string>& command);

/// A program that answers requests, line by line. Its stderr is inherited; its stdin ends with this object, which waits for its end.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command);
  ~Child() { wait(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Sends a line, unless the program has ended.
  void write_line(const std::string& line);
  /// Its next line, without the line break; empty if it has ended.
  std::optional<std::string> read_line();
  /// Closes its stdin, reads the rest of its output and waits for it. A second call gives the exit code again.
  ChildResult wait();

 private:
  bool read_more();  ///< false at the end

  std::unique_ptr<platform::Process> process_;  ///< null: ended, or could not be started
  int exit_code_ = 127;
  std::string output_;  ///< read and not yet given out
};

}  // namespace tenon::bench
