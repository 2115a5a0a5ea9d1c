// SPDX-License-Identifier: Apache-2.0
#include "platform/unbuffered_file.h"

#include <windows.h>

#include "platform/windows/wide.h"

namespace tenon::platform {

File open_unbuffered(const std::string& path, std::error_code& out_error) {
  const HANDLE file = CreateFileW(windows::wide(path).c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                  nullptr, OPEN_EXISTING, FILE_FLAG_NO_BUFFERING, nullptr);
  out_error = file == INVALID_HANDLE_VALUE ? std::error_code(static_cast<int>(GetLastError()), std::system_category()) : std::error_code();
  return File(reinterpret_cast<std::intptr_t>(file));
}

}  // namespace tenon::platform
