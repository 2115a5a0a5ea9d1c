// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "platform/path.h"

namespace tenon::test {

/// A path from the root, as it is read from a file: on Windows with the current drive and backslashes.
inline std::string rooted(const std::string& path) {
  return platform::absolute_path(path);
}

}  // namespace tenon::test
