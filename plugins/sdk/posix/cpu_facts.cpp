// SPDX-License-Identifier: Apache-2.0
#include "cpu_facts.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace tenon::sdk {

CpuFacts cpu_facts() {
  CpuFacts facts;
  if (std::FILE* file = std::fopen("/proc/cpuinfo", "r")) {  // of Linux; elsewhere there is none
    char line[512];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      double mhz = 0;
      if (const char* colon = std::strchr(line, ':'); colon != nullptr && std::strncmp(line, "model name", 10) == 0 && facts.name.empty()) {
        facts.name = colon + 2;
        while (!facts.name.empty() && facts.name.back() == '\n') facts.name.pop_back();
      } else if (std::sscanf(line, "cpu MHz : %lf", &mhz) == 1 && facts.clock_khz == 0) {
        facts.clock_khz = static_cast<std::uint32_t>(mhz * 1000.0);
      }
    }
    std::fclose(file);
  }
#if defined(_SC_PHYS_PAGES) && defined(_SC_AVPHYS_PAGES)
  const long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES), free_pages = sysconf(_SC_AVPHYS_PAGES);
  if (page > 0 && pages > 0) facts.memory_size_bytes = static_cast<std::uint64_t>(page) * static_cast<std::uint64_t>(pages);
  if (page > 0 && free_pages > 0) facts.memory_free_bytes = static_cast<std::uint64_t>(page) * static_cast<std::uint64_t>(free_pages);
#endif
  return facts;
}

}  // namespace tenon::sdk
