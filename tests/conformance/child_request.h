// SPDX-License-Identifier: Apache-2.0
// child_request.h - what the kit tells a child process to do, as an argument of its command line.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "case.h"
#include "conformance.h"

namespace tenon::conformance {

/// The first argument of a child process; the second one is the request.
inline constexpr const char* child_verb = "--conformance-child";

/// Consecutive cases, [begin, end) of the run, that one process runs.
struct Chunk {
  std::size_t begin = 0, end = 0;
};

/// The child makes its cases from the options, as the parent did, and finds its own by the name of the first.
struct ChildRequest {
  Options options;  ///< without the backends that are part of the process: the child has its own
  Chunk chunk;
  std::string first, last;    ///< names of the first and the last case
  std::set<std::string> ops;  ///< those of the cases: it makes no others
  bool shuts_down = true;     ///< it closes devices and backends at its end instead of leaving them to the system
};

ChildRequest request_for(const Options& options, const std::vector<Case>& cases, Chunk chunk, bool shuts_down);

/// As a line of JSON in ASCII, whatever paths are in it. from_text is the inverse; Errors: tenon::Error for a text of another kind.
std::string to_text(const ChildRequest& request);
ChildRequest child_request_from(const std::string& text);

}  // namespace tenon::conformance
