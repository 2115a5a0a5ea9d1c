// SPDX-License-Identifier: Apache-2.0
#include "platform/conventions.h"

#include <windows.h>

#include <string>

namespace tenon::platform {

const Conventions& conventions() {
  static constexpr Conventions windows{"windows", BinaryFormat::pe, "", ".dll", ".exe", ';'};
  return windows;
}

std::string c_library() {
#if defined(_UCRT)
  return "ucrtbase.dll";
#else
  return "msvcrt.dll";
#endif
}

std::vector<std::filesystem::path> system_library_folders() {
  std::wstring folder(GetSystemDirectoryW(nullptr, 0), L'\0');
  folder.resize(GetSystemDirectoryW(folder.data(), static_cast<UINT>(folder.size())));
  return {folder};
}

}  // namespace tenon::platform
