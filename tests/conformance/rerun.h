// rerun.h - the command that shows a failure again.
#pragma once

#include <string>

#include "conformance.h"

namespace tenon::conformance {

/// A word as a POSIX shell takes it: quoted where it has to be.
std::string shell_word(const std::string& word);

/// `tenon conformance ...` for one case of a profile, with all that the run under way was told.
std::string command_for(const Options& options, const Report& report, const std::string& profile, const std::string& test);

}  // namespace tenon::conformance
