// SPDX-License-Identifier: Apache-2.0
// cli/probe.h - probes a backend candidate in a child process, so that a crash or a hang does not affect this process.
#pragma once

#include <tenon/config.h>

#include "loader/loader.h"

namespace tenon::cli {

/// Loads the candidate as a Context does, opens each of its devices, shuts it down, ends the child, and returns the resulting record.
/// `candidate` has path, name and origin. If the candidate crashes, hangs or exits, the record says in which phase, and the remedy. The
/// output of the child, on standard output or standard error, is stored in the record. Threads  must be called before this process starts
/// any.
loader::Record probe(const loader::Record& candidate, const Config& config, double timeout_seconds);

}  // namespace tenon::cli
