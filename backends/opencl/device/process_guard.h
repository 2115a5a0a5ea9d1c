// SPDX-License-Identifier: Apache-2.0
// process_guard.h - drivers change the process that loads them: PoCL sets an environment variable and handles SIGFPE, and LLVM, which
// several drivers compile with, handles all fatal signals. The plugin ABI leaves both to the application, so they are restored.
#pragma once

#include <signal.h>

#include <array>
#include <set>
#include <string>

namespace tenon::opencl {

/// Restores the signal handlers, and removes new environment variables, when it is destroyed. Held around the calls in which drivers
/// initialise: listing devices, creating a context, the first compilation.
class ProcessGuard {
 public:
  ProcessGuard();
  ~ProcessGuard();
  ProcessGuard(const ProcessGuard&) = delete;
  ProcessGuard& operator=(const ProcessGuard&) = delete;

 private:
  static constexpr int signal_count = 32;  // the standard ones
  std::array<struct sigaction, signal_count> actions_{};
  std::set<std::string> variables_;
};

}  // namespace tenon::opencl
