// SPDX-License-Identifier: Apache-2.0
// platform/windows/wide.h - UTF-8 and the UTF-16 of Windows's functions.
#pragma once

#include <string>
#include <string_view>

namespace tenon::platform::windows {

/// UTF-16 of a UTF-8 text. Bytes that are not UTF-8 become U+FFFD.
std::wstring wide(std::string_view utf8);

/// UTF-8 of a UTF-16 text. Half of a surrogate pair becomes U+FFFD.
std::string utf8(std::wstring_view wide);

/// A path from its root, with backslashes: "C:\folder\file", "\\server\share\file", "\\.\NUL".
std::wstring full_path(std::string_view path);

/// A path as Windows's functions take it. One of more than `max_plain_path` characters becomes a full one with the prefix `\\?\`, which
/// lifts the limit of 260 characters; Windows takes what follows the prefix as it is, without "..", and with backslashes only.
std::wstring system_path(std::string_view path);

/// Less than the 248 characters of a folder's path, so that a program can append a name to a path and need not ask for the limit.
constexpr std::size_t max_plain_path = 160;

/// Without the prefix `\\?\`: the path that people see.
std::wstring without_prefix(std::wstring_view path);

}  // namespace tenon::platform::windows
