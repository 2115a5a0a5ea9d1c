// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/machine.h"
#include "exec/thread_pool.h"

namespace tenon::bench {
namespace {

/// Load average of the last minute; negative if unknown.
double load_average() {
#if defined(__unix__)
  double load[1];
  if (getloadavg(load, 1) == 1) return std::round(load[0] * 10) / 10;
#endif
  return -1;
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

}  // namespace

nlohmann::ordered_json describe_machine(const Context& context, int threads) {
  const Device device = context.default_device();
  nlohmann::ordered_json machine;
  machine["processor"] = cli::processor_name();
  machine["processors"] = exec::available_threads();
  machine["isa"] = cli::instruction_sets();
  machine["memory"] = cli::memory_size();
  machine["load"] = load_average();
  machine["os"] = cli::operating_system();
  machine["compiler"] = compiler();
  machine["tenon"] = TENON_VERSION;
  machine["git"] = TENON_GIT_HASH;
  machine["device"] = fmt::format("{} ({})", device.name(), device.info().product);
  for (const LoadRecord& record : context.load_report().records) {
    if (record.healthy && record.name == device.info().backend) {
      machine["backend"] = fmt::format("{} {}, {}, {}", record.name, record.version, record.build_id, device.info().description);
    }
  }
  machine["threads"] = threads;
  machine["time"] = now_utc();
  return machine;
}

ResidentMemory resident_memory() {
  ResidentMemory memory;
  // Unlike getrusage, which counts the memory of the process that started this one as well.
  std::ifstream status("/proc/self/status");
  for (std::string field, line; status >> field && std::getline(status, line);) {
    if (field == "VmRSS:") memory.now = std::strtod(line.c_str(), nullptr) * 1024 / 1e6;
    if (field == "VmHWM:") memory.peak = std::strtod(line.c_str(), nullptr) * 1024 / 1e6;
  }
  return memory;
}

}  // namespace tenon::bench
