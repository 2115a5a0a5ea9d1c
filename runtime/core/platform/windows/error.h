// SPDX-License-Identifier: Apache-2.0
// platform/windows/error.h - errors and handles of Windows as platform/file.h declares them.
#pragma once

#include <windows.h>

#include <system_error>

#include "platform/file.h"

namespace tenon::platform::windows {

inline HANDLE handle(const File& file) {
  return reinterpret_cast<HANDLE>(file.native());  // INVALID_HANDLE_VALUE is -1, as in a File without a file
}

inline File owned(HANDLE handle) {
  return File(reinterpret_cast<std::intptr_t>(handle));
}

inline std::error_code error_of(DWORD code) {
  return {static_cast<int>(code), std::system_category()};
}

inline std::error_code last_error() {
  return error_of(GetLastError());
}

inline std::error_code error_unless(BOOL done) {
  return done != FALSE ? std::error_code() : last_error();
}

}  // namespace tenon::platform::windows
