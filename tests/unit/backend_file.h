// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "platform/conventions.h"
#include "platform/path.h"

namespace tenon::test {

/// "libtenon_backend_<name>.so", "tenon_backend_<name>.dll".
inline std::string backend_file(const std::string& name) {
  const platform::Conventions& system = platform::conventions();
  return std::string(system.library_prefix) + "tenon_backend_" + name + std::string(system.library_suffix);
}
/// The file of a backend of this build.
inline std::string built_backend(const std::string& name) {
  return platform::text_of(platform::path_of(TENON_BACKEND_DIRECTORY) / platform::path_of(backend_file(name)));
}

}  // namespace tenon::test
