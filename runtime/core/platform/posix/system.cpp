// SPDX-License-Identifier: Apache-2.0
#include "platform/system.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#if defined(__linux__)
#include <sys/auxv.h>
#endif

namespace tenon::platform {
namespace {

/// The text after `key` and `separator` on the first line of a file that starts with the key.
std::string value_in(const char* file, const std::string& key, char separator) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t\"", at + 1);
    const std::size_t end = line.find_last_not_of(" \t\"");
    return begin == std::string::npos ? "" : line.substr(begin, end - begin + 1);
  }
  return {};
}

}  // namespace

const char* const home_variable = "HOME";
const char* const missing_cache_folder = "neither XDG_CACHE_HOME nor HOME is set";

std::string executable_path() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : path.string();
}

std::uint64_t process_id() {
  return static_cast<std::uint64_t>(::getpid());
}

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::optional<std::string> environment_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bool is_elevated() {
#if defined(__linux__)
  if (::getauxval(AT_SECURE) != 0) return true;
#endif
  return ::geteuid() != ::getuid() || ::getegid() != ::getgid();
}

std::string home_folder() {
  return environment_variable(home_variable).value_or("");
}

std::string cache_folder() {
  // The XDG base directory specification: a path that is not absolute is ignored.
  const std::string base = environment_variable("XDG_CACHE_HOME").value_or(""), home = home_folder();
  if (base.starts_with('/')) return base;
  return home.starts_with('/') ? home + "/.cache" : "";
}

std::tm local_time(std::time_t time) {
  std::tm local{};
  ::localtime_r(&time, &local);
  return local;
}

std::uint64_t physical_memory_bytes() {
  const auto pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
}

std::string processor_name() {
  return value_in("/proc/cpuinfo", "model name", ':');
}

std::string operating_system() {
  utsname names{};
  std::string kernel;
  if (::uname(&names) == 0) kernel = std::string(names.sysname) + " " + names.release + " " + names.machine;
  const std::string distribution = value_in("/etc/os-release", "PRETTY_NAME=", '=');
  return distribution + (distribution.empty() || kernel.empty() ? "" : ", ") + kernel;
}

}  // namespace tenon::platform
