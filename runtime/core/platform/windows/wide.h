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

}  // namespace tenon::platform::windows
