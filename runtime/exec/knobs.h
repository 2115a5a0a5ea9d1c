// exec/knobs.h - the options that a backend declares, and a user's values for them.
#pragma once

#include <map>
#include <string>

#include <tenon/backend.h>

namespace tenon::exec {

/// The value of every knob of a backend: its default, or what is given. `where` begins each message: "backends.options.openblas".
/// Errors  a knob that the backend does not declare, a value that its declaration does not allow.
std::map<std::string, std::string> knob_values(const tenon_backend_info& info, const std::map<std::string, std::string>& given,
                                               const std::string& where);

}  // namespace tenon::exec
