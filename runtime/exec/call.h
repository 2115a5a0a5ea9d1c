// SPDX-License-Identifier: Apache-2.0
// exec/call.h - calls through the plugin ABI, whose failures become an Error.
#pragma once

#include <string>

#include <tenon/error.h>

#include "loader/error_text.h"
#include "loader/guarded_call.h"

namespace tenon::exec {

using loader::ErrorText;
using loader::guarded_call;

/// Throws Error("<what>: <the backend's text>") unless the status is OK.
inline void check(tenon_status status, const ErrorText& error, const std::string& what) {
  if (status == TENON_OK) return;
  const std::string text = error.text();
  throw Error(static_cast<Status>(status), what + ": " + (text.empty() ? name_of(static_cast<Status>(status)) : text));
}

/// The same for a call that makes an object: OK without one is a failure too. `made`: what `function` wrote to its result parameters is
/// there.
inline void check_made(tenon_status status, const ErrorText& error, bool made, const char* function, const std::string& what) {
  check(status, error, what);
  if (!made) throw Error(Status::internal, what + ": " + function + " returned OK without a result; report this to the plugin's vendor");
}

}  // namespace tenon::exec
