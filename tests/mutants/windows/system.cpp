// SPDX-License-Identifier: Apache-2.0
#include "system.h"

#include <cstdio>
#include <filesystem>

#include <io.h>
#include <windows.h>

namespace tenon::mutants {
namespace {

HMODULE open_unmodified() {
  HMODULE self = nullptr;
  constexpr DWORD by_address = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (GetModuleHandleExW(by_address, reinterpret_cast<const wchar_t*>(&unmodified_query), &self) == 0) return nullptr;
  wchar_t path[4096];
  const DWORD length = GetModuleFileNameW(self, path, 4096);
  if (length == 0 || length == 4096) return nullptr;
  return LoadLibraryW((std::filesystem::path(path).parent_path() / L"tenon_unmodified.dll").c_str());
}

}  // namespace

tenon_backend_query_fn unmodified_query() {
  static const HMODULE library = open_unmodified();
  if (library == nullptr) return nullptr;
  return reinterpret_cast<tenon_backend_query_fn>(reinterpret_cast<void*>(GetProcAddress(library, TENON_BACKEND_QUERY_SYMBOL)));
}

void set_variable(const char* name, const char* value) {
  SetEnvironmentVariableA(name, value);
}

void clear_umask() {
  _umask(0);
}

void leave_file_open() {
  static_cast<void>(CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_EXISTING, 0, nullptr));
}

void lower_file_limit() {
  _setmaxstdio(_getmaxstdio() - 1);
}

void stay_on_one_processor() {
  DWORD_PTR own = 0, all = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &own, &all) == 0 || own == 0) return;
  DWORD_PTR last = 1;
  while (last <= own >> 1) last <<= 1;
  SetProcessAffinityMask(GetCurrentProcess(), last);
}

}  // namespace tenon::mutants
