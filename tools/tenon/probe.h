// tenon/probe.h - one backend candidate, tried in a child process: whatever it does there, this process lives on.
#pragma once

#include <tenon/config.h>

#include "loader/loader.h"

namespace tenon::cli {

/// Loads the candidate as a Context would, opens each of its devices, shuts it down, and says how that went. `candidate` has path, name and
/// origin. A candidate that crashes, hangs or leaves the process gets a record that says during what, and what to do.
/// What the child prints, to standard output or error, stands in the record: it comes between no lines of a report.
/// Threads  call it before this process has started any.
loader::Record probe(const loader::Record& candidate, const Config& config, double timeout_seconds);

}  // namespace tenon::cli
