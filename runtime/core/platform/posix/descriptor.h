// SPDX-License-Identifier: Apache-2.0
// platform/posix/descriptor.h - POSIX's names for what platform/file.h declares.
#pragma once

#include <cerrno>
#include <system_error>

#include "platform/file.h"

namespace tenon::platform::posix {

inline int descriptor(const File& file) {
  return static_cast<int>(file.native());
}

inline std::error_code last_error() {
  return {errno, std::generic_category()};
}

}  // namespace tenon::platform::posix
