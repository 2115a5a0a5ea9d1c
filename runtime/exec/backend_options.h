// SPDX-License-Identifier: Apache-2.0
// exec/backend_options.h - validation of user values for the options that a backend declares.
#pragma once

#include <map>
#include <string>

#include <tenon/backend.h>

namespace tenon::exec {

/// The value of every option of a backend: its default, or the user's value. `where` begins each message: "backends.options.openblas".
/// Errors  an option that the backend does not declare, a value that its declaration does not allow.
std::map<std::string, std::string> option_values(const tenon_backend_info& info, const std::map<std::string, std::string>& given,
                                                 const std::string& where);

}  // namespace tenon::exec
