// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include <fstream>
#include <thread>

#include "exec/thread_pool.h"
#include "loader/loader.h"

namespace tenon::cli {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) {
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::string instruction_sets() {
  std::string text;
#if defined(__x86_64__) && defined(__GNUC__)
  const auto add = [&text](const char* name, bool present) {
    if (present) text += (text.empty() ? "" : " ") + std::string(name);
  };
  add("SSE4.2", __builtin_cpu_supports("sse4.2"));
  add("AVX", __builtin_cpu_supports("avx"));
  add("AVX2", __builtin_cpu_supports("avx2"));
  add("FMA", __builtin_cpu_supports("fma"));
  add("AVX512F", __builtin_cpu_supports("avx512f"));
  add("AVX512BW", __builtin_cpu_supports("avx512bw"));
  add("AVX512VNNI", __builtin_cpu_supports("avx512vnni"));
#elif defined(__aarch64__)
  text = "NEON";
#endif
  return text.empty() ? "unknown" : text;
}

std::string memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || size <= 0) return "unknown";
  return fmt::format("{:.1f} GiB", static_cast<double>(pages) * static_cast<double>(size) / (1024.0 * 1024.0 * 1024.0));
}

std::string system() {
  utsname name{};
  return uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine) : "unknown";
}

std::string libraries() {
  std::string text =
      fmt::format("fmt {}.{}.{}, nlohmann-json {}.{}.{}, CLI11 {}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100,
                  NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH, CLI11_VERSION);
#if defined(__GLIBC__)
  text += fmt::format(", glibc {}", gnu_get_libc_version());
#endif
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe_machine() {
  const tenon_host_info& host = loader::host_info();
  const std::string abi = host.abi_minor_lowest == host.abi_minor_highest
                              ? fmt::format("{}.{}", host.abi_major, host.abi_minor_highest)
                              : fmt::format("{0}.{1} to {0}.{2}", host.abi_major, host.abi_minor_lowest, host.abi_minor_highest);
  return {{"tenon", TENON_VERSION},
          {"build", host.build_id},
          {"platform", host.platform},
          {"backend ABI", abi},
          {"processor", processor()},
          {"instruction sets", instruction_sets()},
          {"cores", fmt::format("{}, {} available to this process", std::thread::hardware_concurrency(), exec::available_threads())},
          {"memory", memory()},
          {"system", system()},
          {"libraries", libraries()}};
}

}  // namespace tenon::cli
