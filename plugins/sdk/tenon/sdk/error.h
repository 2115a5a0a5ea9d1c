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
  Error(tenon_status status, std::string text, std::uint32_t node = TENON_NO_INDEX)
      : status_(status), node_(node), text_(std::move(text)) {}
  tenon_status status() const { return status_; }
  /// Index of the failing node in its plan's graph: for failures that are detected on
  /// synchronisation. TENON_NO_INDEX: unknown.
  std::uint32_t node() const { return node_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  tenon_status status_;
  std::uint32_t node_;
  std::string text_;
};

}  // namespace tenon::sdk
