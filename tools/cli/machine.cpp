// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <fmt/core.h>
#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#include <sstream>
#include <thread>

#include <tenon/config.h>

#include "cli/topology.h"
#include "exec/cpu_quota.h"
#include "exec/thread_pool.h"
#include "loader/loader.h"
#include "platform/conventions.h"
#include "platform/machine.h"
#include "platform/system.h"

namespace tenon::cli {
namespace {

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
}

std::string libraries() {
  std::string text =
      fmt::format("fmt {}.{}.{}, nlohmann-json {}.{}.{}, CLI11 {}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100,
                  NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH, CLI11_VERSION);
  const std::string library = platform::c_library();
  if (!library.empty()) text += ", " + library;
  return text;
}

}  // namespace

std::string processor_name() {
  return or_unknown(platform::processor_name());
}

std::string instruction_sets() {
  std::istringstream flags(platform::processor_features());
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
  const auto bytes = static_cast<double>(platform::physical_memory_bytes());
  return bytes > 0 ? fmt::format("{:.1f} GiB", bytes / (1024.0 * 1024 * 1024)) : "unknown";
}

std::string operating_system() {
  return or_unknown(platform::operating_system());
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
