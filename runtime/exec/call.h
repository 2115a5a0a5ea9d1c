// exec/call.h - calls through the socket: room for the backend's message, and turning a failure into an Error.
#pragma once

#include <cstdio>
#include <exception>
#include <string>

#include <tenon/backend.h>
#include <tenon/error.h>

namespace tenon::exec {

/// The host-owned tenon_error with room for a long sentence.
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
  /// What the slot threw takes the place of its message.
  tenon_status thrown(const char* slot, const char* words) {
    std::snprintf(text_, capacity, "%s threw %s; no exception may leave a plugin: report this to its vendor", slot, words);
    return error_.status = TENON_INTERNAL;
  }

 private:
  static constexpr std::uint32_t capacity = 1024;
  char text_[capacity + 1];  // ends here even if the backend's text does not
  tenon_error error_{};
};

/// The status of a call of `slot`. An exception that a plugin lets out of it is that call's failure, whatever was thrown.
template <class Call>
tenon_status fenced(const char* slot, CallError& error, Call&& call) {
  try {
    return call();
  } catch (const std::exception& e) {
    return error.thrown(slot, e.what());
  } catch (...) {
    return error.thrown(slot, "something that is no std::exception");
  }
}

/// Throws Error("<what>: <the backend's text>") unless the status is OK.
inline void check(tenon_status status, const CallError& error, const std::string& what) {
  if (status == TENON_OK) return;
  throw Error(static_cast<Status>(status), what + ": " + (error.text()[0] != '\0' ? error.text() : name_of(static_cast<Status>(status))));
}

}  // namespace tenon::exec
