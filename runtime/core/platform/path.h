// SPDX-License-Identifier: Apache-2.0
// platform/path.h - paths between the project, where they are UTF-8 strings, and std::filesystem, whose narrow strings on Windows are in
// another encoding. Every crossing uses these two functions.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace tenon::platform {

/// The path that a UTF-8 string names. On POSIX the bytes are taken as they are. On Windows a long path from a root gets the prefix `\\?\`,
/// with which std::filesystem may use more than 260 characters.
std::filesystem::path path_of(std::string_view utf8);

/// A path as UTF-8, with the system's separators. The inverse of path_of(). On POSIX the bytes as they are. On Windows a file name with
/// half of a surrogate pair, which UTF-8 cannot hold, gets U+FFFD in its place.
std::string text_of(const std::filesystem::path& path);

/// The same with slashes on every system, for files that are read elsewhere.
std::string portable_text_of(const std::filesystem::path& path);

/// Without "." and "..", unless it begins with "..". std::filesystem::path::lexically_normal of MinGW takes the names of shares apart.
std::string normal_path(const std::filesystem::path& path);
/// The same from the root of the file system.
std::string absolute_path(const std::string& path);
/// The one path without links of an existing file or folder.
std::string canonical_path(const std::string& path, std::error_code& out_error);

}  // namespace tenon::platform
