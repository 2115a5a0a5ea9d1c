// SPDX-License-Identifier: Apache-2.0
#include "platform/library.h"

#include <windows.h>
// After windows.h.
#include <psapi.h>

#include "platform/windows/error_text.h"
#include "platform/windows/wide.h"

namespace tenon::platform {
namespace {

std::filesystem::path file_of(HMODULE module) {
  for (std::wstring name(MAX_PATH, L'\0'); name.size() < (1u << 16); name.resize(2 * name.size())) {
    const DWORD size = GetModuleFileNameW(module, name.data(), static_cast<DWORD>(name.size()));
    if (size < name.size()) return name.substr(0, size);  // empty if it failed
  }
  return {};
}

}  // namespace

void* open_library(const std::filesystem::path& file, std::string& out_reason) {
  const HMODULE module = LoadLibraryExW(file.c_str(), nullptr, static_cast<DWORD>(load_flags()));
  if (module == nullptr) out_reason = windows::error_text(GetLastError());
  return module;
}

int load_flags() {
  return LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_SYSTEM32;
}

void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

std::filesystem::path module_of(const void* address) {
  HMODULE module = nullptr;
  constexpr DWORD flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (!GetModuleHandleExW(flags, static_cast<const wchar_t*>(address), &module)) return {};
  return file_of(module);
}

std::vector<std::filesystem::path> loaded_modules() {
  std::vector<HMODULE> handles(256);
  DWORD size = 0;
  while (K32EnumProcessModules(GetCurrentProcess(), handles.data(), static_cast<DWORD>(handles.size() * sizeof(HMODULE)), &size) != 0 &&
         size > handles.size() * sizeof(HMODULE)) {
    handles.resize(size / sizeof(HMODULE) + 16);
  }
  handles.resize(size / sizeof(HMODULE));
  std::vector<std::filesystem::path> modules;
  for (const HMODULE handle : handles) modules.push_back(file_of(handle));
  return modules;
}

LoadFailure load_failure(int code) {
  LoadFailure failure;
  failure.text = windows::error_text(static_cast<DWORD>(code));
  if (code == ERROR_MOD_NOT_FOUND) failure.kind = LoadFailure::Kind::missing_library;
  if (code == ERROR_PROC_NOT_FOUND) failure.kind = LoadFailure::Kind::missing_symbol;
  if (code == ERROR_BAD_EXE_FORMAT) failure.kind = LoadFailure::Kind::not_a_library;
  return failure;
}

}  // namespace tenon::platform
