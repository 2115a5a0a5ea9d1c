// SPDX-License-Identifier: Apache-2.0
// rerun.h - the command that reproduces a failure.
#pragma once

#include <string>

#include "conformance.h"

namespace tenon::conformance {

/// A word for a POSIX shell, quoted if necessary.
std::string shell_word(const std::string& word);

/// `tenon conformance ...` for one case of a profile, with the options of the current run.
std::string command_for(const Options& options, const Report& report, const std::string& profile, const std::string& test);

}  // namespace tenon::conformance
