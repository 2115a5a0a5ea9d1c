// SPDX-License-Identifier: Apache-2.0
#include "platform/windows/wide.h"

#include <windows.h>

namespace tenon::platform::windows {

std::wstring wide(std::string_view utf8) {
  const int size = static_cast<int>(utf8.size());
  std::wstring result(static_cast<std::size_t>(MultiByteToWideChar(CP_UTF8, 0, utf8.data(), size, nullptr, 0)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, utf8.data(), size, result.data(), static_cast<int>(result.size()));
  return result;
}

std::string utf8(std::wstring_view wide) {
  const int size = static_cast<int>(wide.size());
  std::string result(static_cast<std::size_t>(WideCharToMultiByte(CP_UTF8, 0, wide.data(), size, nullptr, 0, nullptr, nullptr)), '\0');
  WideCharToMultiByte(CP_UTF8, 0, wide.data(), size, result.data(), static_cast<int>(result.size()), nullptr, nullptr);
  return result;
}

}  // namespace tenon::platform::windows
