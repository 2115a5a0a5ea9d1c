// SPDX-License-Identifier: Apache-2.0
// platform/process_state.h - what a library may change of the process that loads it, in words, for tests of libraries.
#pragma once

#include <map>
#include <string>

namespace tenon::platform {

/// Values by description: "the handler of SIGUSR1" is "a function at 0x7f...". Empty: this system has no such thing, or does not tell it.
using ProcessFacts = std::map<std::string, std::string>;

/// What traps, and with which precision the processor computes.
ProcessFacts floating_point_control();
/// Handlers of signals and this thread's mask; on Windows the filter of exceptions that nobody handles, and the error mode.
ProcessFacts crash_handling();
/// The locale that this thread has for itself.
ProcessFacts thread_locale();
ProcessFacts environment_variables();
ProcessFacts affinity();
/// How files are found and created: the umask; on Windows the folder where DLLs are looked for.
ProcessFacts file_settings();
/// Limits of resources, and the priority.
ProcessFacts limits();
ProcessFacts threads();
ProcessFacts descriptors();

}  // namespace tenon::platform
