// SPDX-License-Identifier: Apache-2.0
#include "platform/path.h"

#include "platform/windows/wide.h"

namespace tenon::platform {

std::filesystem::path path_of(std::string_view utf8) {
  return std::filesystem::path(windows::wide(utf8));
}

std::string text_of(const std::filesystem::path& path) {
  return windows::utf8(path.native());
}

}  // namespace tenon::platform
