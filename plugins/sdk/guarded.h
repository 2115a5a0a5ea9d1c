// SPDX-License-Identifier: Apache-2.0
// guarded.h - the body of a slot: no exception leaves the plugin.
#pragma once

#include <cstdint>

#include <tenon/sdk/error.h>

namespace tenon::sdk {

/// Writes status and text into `error`, unless that is NULL. Returns the status.
tenon_status report(tenon_error* error, tenon_status status, const char* text, std::uint64_t node_id = 0);

/// Runs `body` and turns an exception into a status.
template <class Body>
tenon_status guarded(tenon_error* error, Body&& body) {
  try {
    body();
    return TENON_OK;
  } catch (...) {
    return detail::report_current_exception(error);
  }
}

}  // namespace tenon::sdk
