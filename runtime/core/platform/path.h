// SPDX-License-Identifier: Apache-2.0
// platform/path.h - paths between the project, where they are UTF-8 strings, and std::filesystem, whose narrow strings on Windows are in
// another encoding. Every crossing uses these two functions.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tenon::platform {

/// The path that a UTF-8 string names. On POSIX the bytes are taken as they are.
std::filesystem::path path_of(std::string_view utf8);

/// A path as UTF-8, with the system's separators. The inverse of path_of(). On POSIX the bytes as they are. On Windows a file name with
/// half of a surrogate pair, which UTF-8 cannot hold, gets U+FFFD in its place.
std::string text_of(const std::filesystem::path& path);

}  // namespace tenon::platform
