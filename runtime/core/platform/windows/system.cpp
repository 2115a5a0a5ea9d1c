// SPDX-License-Identifier: Apache-2.0
#include "platform/system.h"

#include <windows.h>

#include <string_view>

#include "platform/path.h"
#include "platform/windows/wide.h"

namespace tenon::platform {
namespace {

/// A text of the registry below HKEY_LOCAL_MACHINE; empty if there is none.
std::string registry_text(const wchar_t* key, const wchar_t* name) {
  wchar_t text[256] = L"";
  DWORD size_bytes = sizeof text;
  if (RegGetValueW(HKEY_LOCAL_MACHINE, key, name, RRF_RT_REG_SZ, nullptr, text, &size_bytes) != ERROR_SUCCESS) return "";
  std::string result = windows::utf8(text);
  while (result.ends_with(' ')) result.pop_back();
  return result;
}

/// Major, minor and build number. GetVersionEx tells programs of old manifests an old version; this function does not.
std::string version() {
  using Function = LONG(WINAPI*)(OSVERSIONINFOW*);
  OSVERSIONINFOW info{};
  info.dwOSVersionInfoSize = sizeof info;
  const auto get = reinterpret_cast<Function>(reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "RtlGetVersion")));
  if (get == nullptr || get(&info) != 0) return "";
  return std::to_string(info.dwMajorVersion) + "." + std::to_string(info.dwMinorVersion) + "." + std::to_string(info.dwBuildNumber);
}

std::string folder_variable(const char* name) {
  const std::string value = environment_variable(name).value_or("");
  return path_of(value).is_absolute() ? value : "";
}

}  // namespace

const char* const home_variable = "USERPROFILE";
const char* const missing_cache_folder = "LOCALAPPDATA is not set";

std::string executable_path() {
  std::wstring path(32768, L'\0');  // the limit of paths
  path.resize(GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  return windows::utf8(windows::without_prefix(path));
}

std::uint64_t process_id() {
  return GetCurrentProcessId();
}

std::string host_name() {
  wchar_t name[256] = L"";
  DWORD size = 256;
  return GetComputerNameExW(ComputerNamePhysicalDnsHostname, name, &size) != FALSE ? windows::utf8({name, size}) : "localhost";
}

std::optional<std::string> environment_variable(const std::string& name) {
  const std::wstring wide = windows::wide(name);
  std::wstring value(256, L'\0');
  for (;;) {
    SetLastError(ERROR_SUCCESS);
    const DWORD size = GetEnvironmentVariableW(wide.c_str(), value.data(), static_cast<DWORD>(value.size()));
    if (size == 0 && GetLastError() == ERROR_ENVVAR_NOT_FOUND) return std::nullopt;
    const bool fits = size < value.size();
    value.resize(size);
    if (fits) return windows::utf8(value);
  }
}

bool is_elevated() {
  return false;  // an elevated process has an environment of its own; whoever starts it cannot add to it
}

std::string home_folder() {
  return folder_variable(home_variable);
}

std::string cache_folder() {
  return folder_variable("LOCALAPPDATA");
}

std::tm local_time(std::time_t time) {
  std::tm local{};
  localtime_s(&local, &time);
  return local;
}

std::uint64_t physical_memory_bytes() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  return GlobalMemoryStatusEx(&status) != FALSE ? status.ullTotalPhys : 0;
}

std::string processor_name() {
  return registry_text(L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", L"ProcessorNameString");
}

std::string operating_system() {
  // The product's name in the registry is "Windows 10" also for Windows 11, whose build numbers begin at 22000.
  const std::string number = version();
  SYSTEM_INFO info{};
  GetNativeSystemInfo(&info);
  const char* const machine = info.wProcessorArchitecture == PROCESSOR_ARCHITECTURE_ARM64 ? "arm64" : "x86_64";
  return "Windows" + (number.empty() ? "" : " " + number) + " " + machine;
}

}  // namespace tenon::platform
