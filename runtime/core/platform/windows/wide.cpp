// SPDX-License-Identifier: Apache-2.0
#include "platform/windows/wide.h"

#include <windows.h>

#include <algorithm>

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

std::wstring full_path(std::string_view path) {
  const std::wstring given = wide(path);
  std::wstring full(std::max<std::size_t>(given.size() + 1, MAX_PATH), L'\0');
  for (;;) {
    const DWORD size = GetFullPathNameW(given.c_str(), static_cast<DWORD>(full.size()), full.data(), nullptr);
    if (size == 0) return given;
    const bool fits = size < full.size();
    full.resize(size);
    if (fits) return full;
  }
}

std::wstring system_path(std::string_view path) {
  std::wstring full = full_path(path);
  if (full.size() <= max_plain_path || full.starts_with(L"\\\\?\\") || full.starts_with(L"\\\\.\\")) return full;
  if (full.starts_with(L"\\\\")) return L"\\\\?\\UNC" + full.substr(1);
  return L"\\\\?\\" + full;
}

std::wstring without_prefix(std::wstring_view path) {
  constexpr std::wstring_view prefix = L"\\\\?\\", share = L"\\\\?\\UNC\\";
  if (path.starts_with(share)) return L"\\\\" + std::wstring(path.substr(share.size()));
  return std::wstring(path.starts_with(prefix) ? path.substr(prefix.size()) : path);
}

}  // namespace tenon::platform::windows
