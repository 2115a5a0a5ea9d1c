// SPDX-License-Identifier: Apache-2.0
#include "platform/processors.h"

#include <windows.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <thread>

namespace tenon::platform {

std::uint32_t usable_processors() {
  // The affinity is that of one group of 64 processors. Threads may run in all groups unless it leaves processors of its own group out.
  DWORD_PTR process = 0, system = 0;
  const std::uint32_t all = std::max(1u, static_cast<std::uint32_t>(GetActiveProcessorCount(ALL_PROCESSOR_GROUPS)));
  if (GetProcessAffinityMask(GetCurrentProcess(), &process, &system) == FALSE || process == 0 || process == system) return all;
  return static_cast<std::uint32_t>(std::popcount(std::uint64_t{process}));
}

int current_processor() {
  PROCESSOR_NUMBER number{};
  GetCurrentProcessorNumberEx(&number);
  return number.Group * 64 + number.Number;
}

int current_memory_node() {
  PROCESSOR_NUMBER number{};
  GetCurrentProcessorNumberEx(&number);
  USHORT node = 0;
  return GetNumaProcessorNodeEx(&number, &node) != FALSE && node != 0xffff ? node : -1;
}

void leave_processor(int) {}  // the scheduler looks for an idle processor when it wakes a thread

}  // namespace tenon::platform
