// exec/call.h - calls through the socket: room for the backend's message, and turning a failure into an Error.
#pragma once

#include <string>

#include <tenon/backend.h>
#include <tenon/error.h>

namespace tenon::exec {

/// The host-owned tenon_error with room for a long sentence.
class CallError {
 public:
  CallError() {
    text_[0] = text_[sizeof text_ - 1] = '\0';
    error_.struct_size = sizeof error_;
    error_.node = TENON_NO_INDEX;
    error_.text_capacity = sizeof text_ - 1;  // the last byte stays the end of a text that a backend leaves without one
    error_.text = text_;
  }
  CallError(const CallError&) = delete;
  CallError& operator=(const CallError&) = delete;

  tenon_error* get() { return &error_; }
  const char* text() const { return text_; }
  std::uint32_t node() const { return error_.node; }

 private:
  char text_[1024];
  tenon_error error_{};
};

/// Throws Error("<what>: <the backend's text>") unless the status is OK.
inline void check(tenon_status status, const CallError& error, const std::string& what) {
  if (status == TENON_OK) return;
  throw Error(static_cast<Status>(status), what + ": " + (error.text()[0] != '\0' ? error.text() : name_of(static_cast<Status>(status))));
}

}  // namespace tenon::exec
