// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/error.h - failure inside a plugin: thrown here, turned into a status and its message at
// the boundary.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include <tenon/backend.h>

namespace tenon::sdk {

/// The exception of SDK code and kernels. The guard at the boundary reports status and text to the
/// host.
class Error : public std::exception {
 public:
  Error(tenon_status status, std::string text, std::uint64_t node_id = 0) : status_(status), node_id_(node_id), text_(std::move(text)) {}
  tenon_status status() const { return status_; }
  /// tenon_node.id of the failing node; 0: none, or unknown.
  std::uint64_t node_id() const { return node_id_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  tenon_status status_;
  std::uint64_t node_id_;
  std::string text_;
};

namespace detail {
/// Describes the exception that is being handled, in the caller's tenon_error, and returns its
/// status.
tenon_status report_current_exception(tenon_error* error) noexcept;
}  // namespace detail

}  // namespace tenon::sdk
