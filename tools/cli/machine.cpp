// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <fmt/core.h>
#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include <thread>

#include <tenon/config.h>

#include "bench/machine.h"
#include "bench/topology.h"
#include "exec/thread_pool.h"
#include "loader/loader.h"

namespace tenon::cli {
namespace {

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

std::uint32_t thread_budget(const Config& config) {
  return config.threads > 0 ? static_cast<std::uint32_t>(config.threads) : exec::available_threads();
}

std::vector<std::pair<std::string, std::string>> describe_machine(std::uint32_t threads) {
  const tenon_host_info& host = loader::host_info();
  const std::string abi = host.abi_minor_lowest == host.abi_minor_highest
                              ? fmt::format("{}.{}", host.abi_major, host.abi_minor_highest)
                              : fmt::format("{0}.{1} to {0}.{2}", host.abi_major, host.abi_minor_lowest, host.abi_minor_highest);
  std::vector<std::pair<std::string, std::string>> rows{
      {"tenon", TENON_VERSION},
      {"build", host.build_id},
      {"platform", host.platform},
      {"backend ABI", abi},
      {"processor", bench::processor_name()},
      {"cores", fmt::format("{}, {} available to this process", std::thread::hardware_concurrency(), exec::available_threads())}};
  for (auto& row : bench::describe_parallelism(threads)) rows.push_back(std::move(row));
  rows.insert(rows.end(), {{"memory", bench::memory_size()}, {"system", bench::operating_system()}, {"libraries", libraries()}});
  return rows;
}

}  // namespace tenon::cli
