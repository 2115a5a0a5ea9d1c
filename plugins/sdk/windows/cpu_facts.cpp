// SPDX-License-Identifier: Apache-2.0
#include "cpu_facts.h"

#include <windows.h>

namespace tenon::sdk {
namespace {

/// The registry keeps these for each logical processor, on every architecture. The first one's stand for all.
constexpr const char* processor = R"(HARDWARE\DESCRIPTION\System\CentralProcessor\0)";

std::string processor_name() {
  char text[256] = {};
  DWORD size = sizeof text - 1;
  if (RegGetValueA(HKEY_LOCAL_MACHINE, processor, "ProcessorNameString", RRF_RT_REG_SZ, nullptr, text, &size) != ERROR_SUCCESS) return {};
  std::string name = text;
  while (!name.empty() && name.back() == ' ') name.pop_back();
  return name;
}

std::uint32_t clock_khz() {
  DWORD mhz = 0, size = sizeof mhz;
  if (RegGetValueA(HKEY_LOCAL_MACHINE, processor, "~MHz", RRF_RT_REG_DWORD, nullptr, &mhz, &size) != ERROR_SUCCESS) return 0;
  return static_cast<std::uint32_t>(mhz) * 1000;
}

}  // namespace

CpuFacts cpu_facts() {
  CpuFacts facts;
  facts.name = processor_name();
  facts.clock_khz = clock_khz();
  MEMORYSTATUSEX memory{};
  memory.dwLength = sizeof memory;
  if (GlobalMemoryStatusEx(&memory) != 0) {
    facts.memory_size_bytes = memory.ullTotalPhys;
    facts.memory_free_bytes = memory.ullAvailPhys;
  }
  return facts;
}

}  // namespace tenon::sdk
