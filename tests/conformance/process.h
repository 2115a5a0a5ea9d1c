// SPDX-License-Identifier: Apache-2.0
// process.h - process state that a backend must not change: read before and after, and compared.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tenon::conformance {

/// Values by description: "the handler of SIGUSR1" is "0x7f...".
using Reading = std::map<std::string, std::string>;

/// A part of the process's state.
struct Facet {
  const char* name;  ///< as in core/process/<name>
  Reading (*read)();
  bool once;  ///< the first backend of a library may add to it permanently: a vendor's driver keeps its threads and files
};
const std::vector<Facet>& process_facets();
const Facet& process_facet(const std::string& name);

/// All facets but those marked `once`, by name.
using ProcessState = std::map<std::string, Reading>;
ProcessState process_state();

/// "the locale was C, is now de_DE"; empty if nothing changed.
std::string change_between(const Reading& before, const Reading& after);

}  // namespace tenon::conformance
