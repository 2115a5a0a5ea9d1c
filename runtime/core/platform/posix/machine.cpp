// SPDX-License-Identifier: Apache-2.0
#include "platform/machine.h"

#include <stdlib.h>  // getloadavg

#include <cstdlib>
#include <fstream>

namespace tenon::platform {

std::string processor_features() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const bool features = line.starts_with("flags") || line.starts_with("Features");  // the latter on arm64
    const std::size_t colon = line.find(':');
    if (features && colon != std::string::npos) return line.substr(colon + 1);
  }
  return {};
}

double load_average() {
  double load[1];
  return ::getloadavg(load, 1) == 1 ? load[0] : -1;
}

ResidentMemory resident_memory() {
  ResidentMemory memory;
  // Unlike getrusage, which counts the memory of the process that started this one as well.
  std::ifstream status("/proc/self/status");
  for (std::string field, line; status >> field && std::getline(status, line);) {
    if (field == "VmRSS:") memory.now_bytes = std::strtoull(line.c_str(), nullptr, 10) * 1024;
    if (field == "VmHWM:") memory.peak_bytes = std::strtoull(line.c_str(), nullptr, 10) * 1024;
  }
  return memory;
}

}  // namespace tenon::platform
