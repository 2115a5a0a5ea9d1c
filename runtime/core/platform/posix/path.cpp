// SPDX-License-Identifier: Apache-2.0
#include "platform/path.h"

namespace tenon::platform {

std::filesystem::path path_of(std::string_view utf8) {
  return std::filesystem::path(utf8);
}

std::string text_of(const std::filesystem::path& path) {
  return path.native();
}

std::string portable_text_of(const std::filesystem::path& path) {
  return path.native();
}

std::string normal_path(const std::filesystem::path& path) {
  return path.lexically_normal().native();
}

std::string absolute_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().native();
}

std::string canonical_path(const std::string& path, std::error_code& out_error) {
  return std::filesystem::canonical(path, out_error).native();
}

}  // namespace tenon::platform
