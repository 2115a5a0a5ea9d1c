// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.h"

#include <fmt/core.h>

#include <cmath>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#if defined(__unix__)
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#endif

#include "exec/thread_pool.h"

namespace tenon::bench {
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

nlohmann::ordered_json describe_machine(const Context& context, int threads) {
  const Device device = context.default_device();
  nlohmann::ordered_json machine;
  machine["processor"] = processor_name();
  machine["processors"] = exec::available_threads();
  machine["isa"] = instruction_sets();
  machine["memory"] = memory_size();
  machine["load"] = load_average();
  machine["os"] = operating_system();
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

double peak_memory_mb() {
#if defined(__unix__)
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;  // Linux counts kilobytes
#endif
  return 0;
}

}  // namespace tenon::bench
