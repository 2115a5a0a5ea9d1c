// SPDX-License-Identifier: Apache-2.0
// child.h - runs cases in a child process, so that what the backend does to that process cannot affect this one.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "backend_under_test.h"
#include "child_request.h"
#include "platform/process.h"

namespace tenon::conformance {

/// The parent's handle of a process that loads the backend and runs a chunk of cases: this program, started with a request
/// (child_program.h). That process may print, hang, crash, call exit(), install handlers and close descriptors: it has its own process
/// group, standard streams and descriptors, and is killed in the end.
/// Threads  one.
class Child {
 public:
  /// Starts the process; options and cases outlive it. `shuts_down`: it closes devices and backends at its end instead of leaving them to
  /// the system.
  Child(const Options& options, const std::vector<Case>& cases, Chunk chunk, bool shuts_down);

  /// For wait_for_any(): call advance() after it.
  platform::Process& process() { return process_; }
  /// Reads what is available without waiting; kills the process after a timeout without messages.
  void advance();
  bool over() const { return over_; }

  Chunk chunk() const { return chunk_; }
  /// The verdicts so far, from case chunk().begin on.
  const std::vector<Verdict>& verdicts() const { return verdicts_; }
  std::size_t next() const { return chunk_.begin + verdicts_.size(); }
  bool loaded() const { return !backend_.empty(); }
  /// Whether the process completed its work, including the shutdown.
  bool ended() const { return ended_; }
  /// Whether the device was lost in the last case, so that the process ran no other.
  bool device_lost() const { return device_lost_; }
  /// For a case that ends with exit(0): whether the process did.
  bool exited_well() const;
  /// The loader's message if the backend could not be loaded; empty if it was loaded or the process died.
  const std::string& refusal() const { return refusal_; }
  const std::string& wrong_use() const { return wrong_use_; }
  /// How the process ended, with the last lines that it printed.
  std::string fate() const;

  const std::string& backend() const { return backend_; }
  const std::string& version() const { return version_; }
  const std::string& device() const { return device_; }

 private:
  void handle(const std::string& line);

  const Options& options_;
  const Chunk chunk_;
  platform::Process process_;
  std::string unread_, printed_;
  std::chrono::steady_clock::time_point heard_;
  std::vector<Verdict> verdicts_;
  std::string backend_, version_, device_, refusal_, wrong_use_;
  bool timed_out_ = false, killed_ = false, ended_ = false, over_ = false, device_lost_ = false;
};

}  // namespace tenon::conformance
