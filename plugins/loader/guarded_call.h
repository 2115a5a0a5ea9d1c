// SPDX-License-Identifier: Apache-2.0
// loader/guarded_call.h - calls into a plugin, out of which no exception comes.
#pragma once

#include <exception>
#include <string>

#include <tenon/backend.h>

#include "loader/error_text.h"

namespace tenon::loader {

/// What the exception that is being handled says of the plugin that let it escape: "threw ...".
inline std::string describe_exception() {
  try {
    throw;
  } catch (const std::exception& e) {
    return std::string("threw an exception: ") + e.what();
  } catch (...) {
    return "threw something that is not a std::exception";
  }
}

/// The status of call(), a call of `function`. An exception that escapes from the plugin becomes a failure of that call.
template <class Call>
tenon_status guarded_call(const char* function, ErrorText& error, Call&& call) {
  try {
    return call();
  } catch (...) {
    return error.set(TENON_INTERNAL,
                     std::string(function) + " " + describe_exception() + "; no exception may leave a plugin: report this to its vendor");
  }
}

}  // namespace tenon::loader
