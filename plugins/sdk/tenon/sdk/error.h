// tenon/sdk/error.h - failure inside a plugin: thrown here, turned into a status and its message at the boundary.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include <tenon/backend.h>

namespace tenon::sdk {

/// What SDK code and kernels throw. The guard at the boundary hands status and text to the host.
class Error : public std::exception {
 public:
  Error(tenon_status status, std::string text) : status_(status), text_(std::move(text)) {}
  tenon_status status() const { return status_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  tenon_status status_;
  std::string text_;
};

}  // namespace tenon::sdk
