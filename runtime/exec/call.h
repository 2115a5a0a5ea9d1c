// SPDX-License-Identifier: Apache-2.0
// exec/call.h - calls through the plugin ABI: a buffer for the backend's message, and conversion of failures to Error.
#pragma once

#include <cstdio>
#include <exception>
#include <string>

#include <tenon/backend.h>
#include <tenon/error.h>

namespace tenon::exec {

/// The host-owned tenon_error with a buffer for a long sentence.
class CallError {
 public:
  CallError() {
    text_[0] = text_[capacity] = '\0';
    error_.struct_size = sizeof error_;
    error_.node = TENON_NO_INDEX;
    error_.text_capacity = capacity;
    error_.text = text_;
  }
  CallError(const CallError&) = delete;
  CallError& operator=(const CallError&) = delete;

  tenon_error* get() { return &error_; }
  const char* text() const { return text_; }
  std::uint32_t node() const { return error_.node; }
  /// Replaces the message by a description of what `slot` threw.
  tenon_status thrown(const char* slot, const char* words) {
    std::snprintf(text_, capacity, "%s threw %s; no exception may leave a plugin: report this to its vendor", slot, words);
    return error_.status = TENON_INTERNAL;
  }

 private:
  static constexpr std::uint32_t capacity = 1024;
  char text_[capacity + 1];  // the last byte stays 0 even if the backend's text is not terminated
  tenon_error error_{};
};

/// The status of calling `slot`. Any exception that escapes from the plugin becomes a failure of that call.
template <class Call>
tenon_status guarded_call(const char* slot, CallError& error, Call&& call) {
  try {
    return call();
  } catch (const std::exception& e) {
    return error.thrown(slot, e.what());
  } catch (...) {
    return error.thrown(slot, "an object that is not a std::exception");
  }
}

/// Throws Error("<what>: <the backend's text>") unless the status is OK.
inline void check(tenon_status status, const CallError& error, const std::string& what) {
  if (status == TENON_OK) return;
  throw Error(static_cast<Status>(status), what + ": " + (error.text()[0] != '\0' ? error.text() : name_of(static_cast<Status>(status))));
}

}  // namespace tenon::exec
