// SPDX-License-Identifier: Apache-2.0
#include "system.h"

#include <windows.h>

#include <clocale>
#include <cstdint>
#include <string>

namespace tenon::mutants {

tenon_backend_query_fn query_of_neighbour(const char* file) {
  HMODULE own = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                     reinterpret_cast<const wchar_t*>(&query_of_neighbour), &own);
  std::wstring path(32768, L'\0');
  path.resize(GetModuleFileNameW(own, path.data(), static_cast<DWORD>(path.size())));
  path.resize(path.find_last_of(L"\\/") + 1);
  for (const char* c = file; *c != '\0'; ++c) path += static_cast<wchar_t>(*c);
  const HMODULE library = LoadLibraryW(path.c_str());
  if (library == nullptr) return nullptr;
  return reinterpret_cast<tenon_backend_query_fn>(reinterpret_cast<void*>(GetProcAddress(library, TENON_BACKEND_QUERY_SYMBOL)));
}

void crash() {
  const volatile std::uintptr_t nowhere = 64;
  *reinterpret_cast<volatile int*>(nowhere) = 1;
}

void set_variable(const char* name, const char* value) {
  SetEnvironmentVariableA(name, value);
}

void change_locale() {
  std::setlocale(LC_ALL, "English_United States.1252");
}

void stay_on_one_processor() {
  DWORD_PTR process = 0, system = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &process, &system) == 0) return;
  DWORD_PTR last = 1;
  for (DWORD_PTR bit = 1; bit != 0; bit <<= 1) {
    if ((process & bit) != 0) last = bit;
  }
  SetProcessAffinityMask(GetCurrentProcess(), last);
}

// Windows has no umask and no limit of open files, and does not tell which handles a process has: CMakeLists.txt leaves these mutants out.
void change_umask() {}
void lower_file_limit() {}
void leave_file_open() {}

}  // namespace tenon::mutants
