// SPDX-License-Identifier: Apache-2.0
#include "platform/process_state.h"

#include <windows.h>
// After windows.h:
#include <float.h>
#include <stdlib.h>
#include <tlhelp32.h>

#include <cstdio>

#include "platform/windows/wide.h"

namespace tenon::platform {
namespace {

std::string hexadecimal(unsigned long long value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", value);
  return text;
}

}  // namespace

ProcessFacts floating_point_control() {
  return {{"the control word of the floating-point unit", hexadecimal(_controlfp(0, 0))}};
}

ProcessFacts crash_handling() {
  // The filter can be read only by setting it.
  const auto filter = SetUnhandledExceptionFilter(nullptr);
  SetUnhandledExceptionFilter(filter);
  return {{"the filter of unhandled exceptions", hexadecimal(reinterpret_cast<std::uintptr_t>(filter))},
          {"the error mode", hexadecimal(GetErrorMode())}};
}

ProcessFacts thread_locale() {
  return {{"the thread's own locale", _configthreadlocale(0) == _ENABLE_PER_THREAD_LOCALE ? "set" : "none"}};
}

ProcessFacts environment_variables() {
  ProcessFacts facts;
  wchar_t* const all = GetEnvironmentStringsW();
  for (const wchar_t* entry = all; entry != nullptr && *entry != L'\0'; entry += std::char_traits<wchar_t>::length(entry) + 1) {
    const std::string line = windows::utf8(entry);
    const std::size_t equals = line.find('=', 1);  // those of drives begin with one
    if (equals != std::string::npos) facts["the environment variable " + line.substr(0, equals)] = "'" + line.substr(equals + 1) + "'";
  }
  if (all != nullptr) FreeEnvironmentStringsW(all);
  return facts;
}

ProcessFacts affinity() {
  DWORD_PTR process = 0, system = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &process, &system) == 0) return {};
  return {{"the set of processors this process may run on", hexadecimal(process)}};
}

ProcessFacts file_settings() {
  wchar_t folder[MAX_PATH + 1] = L"";
  GetDllDirectoryW(MAX_PATH, folder);
  return {{"the folder for DLLs", "'" + windows::utf8(folder) + "'"}};
}

ProcessFacts limits() {
  return {{"the priority class", hexadecimal(GetPriorityClass(GetCurrentProcess()))},
          {"the thread's priority", std::to_string(GetThreadPriority(GetCurrentThread()))}};
}

ProcessFacts threads() {
  ProcessFacts facts;
  const HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
  if (all == INVALID_HANDLE_VALUE) return facts;
  THREADENTRY32 entry{};
  entry.dwSize = sizeof entry;
  for (BOOL more = Thread32First(all, &entry); more != 0; more = Thread32Next(all, &entry)) {
    if (entry.th32OwnerProcessID == GetCurrentProcessId()) facts["thread " + std::to_string(entry.th32ThreadID)] = "''";
  }
  CloseHandle(all);
  return facts;
}

ProcessFacts descriptors() {
  return {};  // the system counts handles, and has some of its own for its libraries
}

}  // namespace tenon::platform
