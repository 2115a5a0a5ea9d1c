// SPDX-License-Identifier: Apache-2.0
// cli/probe.h - probes a backend candidate in a child process, so that a crash or a hang does not affect this process.
#pragma once

#include <string>
#include <vector>

#include <tenon/config.h>

#include "loader/loader.h"

namespace tenon::cli {

/// Loads the candidate as a Context does, opens each of its devices, shuts it down, ends the child, and returns the resulting record.
/// `candidate` has path, name and origin. The child is this program with `arguments`, which make it call answer_probe(). If the candidate
/// crashes, hangs or exits, the record says in which phase, and the remedy. The output of the child, on standard output or standard error,
/// is stored in the record.
loader::Record probe(const loader::Record& candidate, const std::vector<std::string>& arguments, double timeout_seconds);

/// The child's side: does what probe() describes, and tells the program that started this one. Returns without having done anything if no
/// program waits for the answer.
void answer_probe(const loader::Record& candidate, const Config& config);

}  // namespace tenon::cli
