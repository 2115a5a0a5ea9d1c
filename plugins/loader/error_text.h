// SPDX-License-Identifier: Apache-2.0
// loader/error_text.h - the caller's side of tenon_error.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/backend.h>

namespace tenon::loader {

/// The tenon_error of a call, with memory for a long sentence.
class ErrorText {
 public:
  /// Clears the ends of the text only: each call makes one, and 1 KiB of zeros costs as much as a small BLAS call.
  ErrorText() : error_{sizeof(tenon_error), TENON_OK, 0, text_, capacity, 0} { text_[0] = text_[capacity] = '\0'; }
  ErrorText(const ErrorText&) = delete;
  ErrorText& operator=(const ErrorText&) = delete;

  operator tenon_error*() { return &error_; }
  tenon_status status() const { return error_.status; }
  /// tenon_node.id of the node that failed; 0: none, or unknown.
  std::uint64_t node_id() const { return error_.node_id; }
  /// The backend's sentence; empty if it gave none.
  std::string text() const { return text_; }
  /// Makes this the failure, in the place of what the backend reported.
  tenon_status set(tenon_status status, const std::string& text) {
    text_[text.copy(text_, capacity)] = '\0';
    error_.node_id = 0;
    return error_.status = status;
  }

 private:
  static constexpr std::uint32_t capacity = 1024;
  char text_[capacity + 1];  // the last byte stays 0, whatever a backend writes
  tenon_error error_;
};

}  // namespace tenon::loader
