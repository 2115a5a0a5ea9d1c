// SPDX-License-Identifier: Apache-2.0
// tenon/error.h - errors of the C++ API. Threads: any.
#pragma once

#include <stdexcept>
#include <string>

#include <tenon/api.h>
#include <tenon/backend.h>

namespace tenon {

/// The ABI's status codes under C++ names.
enum class Status : tenon_status {
  ok = TENON_OK,
  invalid_argument = TENON_INVALID_ARGUMENT,
  unsupported = TENON_UNSUPPORTED,
  out_of_memory = TENON_OUT_OF_MEMORY,
  device_not_found = TENON_DEVICE_NOT_FOUND,
  device_lost = TENON_DEVICE_LOST,
  incompatible = TENON_INCOMPATIBLE,
  not_ready = TENON_NOT_READY,
  cancelled = TENON_CANCELLED,
  vendor_error = TENON_VENDOR_ERROR,
  internal = TENON_INTERNAL,
  forked = TENON_FORKED,
};

/// "INVALID_ARGUMENT", "DEVICE_NOT_FOUND", ...
TENON_API const char* name_of(Status status);

/// Every failure of the API. what() names the subject, what was expected, what was given and, if
/// there is one, the remedy.
class TENON_API Error : public std::runtime_error {
 public:
  /// With the given status.
  Error(Status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  /// With INVALID_ARGUMENT, the most common status.
  explicit Error(const std::string& text) : Error(Status::invalid_argument, text) {}
  /// The category of the failure.
  Status status() const { return status_; }

 private:
  Status status_;
};

}  // namespace tenon
