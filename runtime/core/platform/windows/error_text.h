// SPDX-License-Identifier: Apache-2.0
// platform/windows/error_text.h - the words of Windows for an error code.
#pragma once

#include <string>

namespace tenon::platform::windows {

/// "Access is denied (error 5)": the message of an error code of GetLastError, in UTF-8, without its full stop and line break.
std::string error_text(unsigned long code);

}  // namespace tenon::platform::windows
