// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <fmt/core.h>
#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#if defined(__unix__)
#include <sys/utsname.h>
#include <unistd.h>
#endif
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include <fstream>
#include <sstream>
#include <thread>

#include <tenon/config.h>

#include "cli/topology.h"
#include "exec/cpu_quota.h"
#include "exec/thread_pool.h"
#include "loader/loader.h"

namespace tenon::cli {
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

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
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

std::string processor_name() {
  return or_unknown(value_in("/proc/cpuinfo", "model name", ':'));
}

std::string instruction_sets() {
  std::istringstream flags(value_in("/proc/cpuinfo", "flags", ':') + " " + value_in("/proc/cpuinfo", "Features", ':'));
  const std::string relevant[] = {"sse4_2",      "avx",         "f16c",        "fma",      "avx2",     "avx512f", "avx512bw",
                                  "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_tile", "asimd",   "sve"};
  std::string found;
  for (std::string flag; flags >> flag;) {
    for (const std::string& name : relevant) {
      if (flag == name) found += (found.empty() ? "" : " ") + flag;
    }
  }
  return or_unknown(found);
}

std::string memory_size() {
#if defined(__unix__)
  const double bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return fmt::format("{:.1f} GiB", bytes / (1024.0 * 1024 * 1024));
#else
  return "unknown";
#endif
}

std::string operating_system() {
  std::string kernel;
#if defined(__unix__)
  utsname names{};
  if (uname(&names) == 0) kernel = fmt::format("{} {} {}", names.sysname, names.release, names.machine);
#endif
  const std::string distribution = value_in("/etc/os-release", "PRETTY_NAME=", '=');
  return or_unknown(distribution + (distribution.empty() || kernel.empty() ? "" : ", ") + kernel);
}

std::uint32_t thread_budget(const Config& config) {
  return config.threads > 0 ? static_cast<std::uint32_t>(config.threads) : exec::available_threads();
}

std::vector<std::pair<std::string, std::string>> describe_machine(std::uint32_t threads) {
  const tenon_host_info& host = loader::host_info();
  const std::string abi = host.abi_minor_lowest == host.abi_minor_highest
                              ? fmt::format("{}.{}", host.abi_major, host.abi_minor_highest)
                              : fmt::format("{0}.{1} to {0}.{2}", host.abi_major, host.abi_minor_lowest, host.abi_minor_highest);
  const std::optional<double> cpus = exec::cpu_quota();
  const std::string quota = cpus ? fmt::format(" (affinity {}, CPU quota of its cgroup {:.2f})", exec::affinity_threads(), *cpus) : "";
  std::vector<std::pair<std::string, std::string>> rows{
      {"tenon", TENON_VERSION},
      {"build", host.build_id},
      {"platform", host.platform},
      {"backend ABI", abi},
      {"processor", processor_name()},
      {"cores", fmt::format("{}, {} available to this process{}", std::thread::hardware_concurrency(), exec::available_threads(), quota)}};
  for (auto& row : describe_parallelism(threads)) rows.push_back(std::move(row));
  rows.insert(rows.end(), {{"memory", memory_size()}, {"system", operating_system()}, {"libraries", libraries()}});
  return rows;
}

}  // namespace tenon::cli
