// SPDX-License-Identifier: Apache-2.0
// guarded.h - the body of a slot: no exception leaves the plugin.
#pragma once

#include <tenon/sdk/error.h>

namespace tenon::sdk {

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
