// SPDX-License-Identifier: Apache-2.0
#include "platform/windows/error_text.h"

#include <windows.h>

#include "platform/windows/wide.h"

namespace tenon::platform::windows {

std::string error_text(unsigned long code) {
  wchar_t buffer[1024];
  DWORD size = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr, code, 0, buffer,
                              static_cast<DWORD>(std::size(buffer)), nullptr);
  while (size > 0 && (buffer[size - 1] == L'\n' || buffer[size - 1] == L'\r' || buffer[size - 1] == L'.' || buffer[size - 1] == L' '))
    --size;
  const std::string number = "error " + std::to_string(code);
  return size == 0 ? number : utf8({buffer, size}) + " (" + number + ")";
}

}  // namespace tenon::platform::windows
