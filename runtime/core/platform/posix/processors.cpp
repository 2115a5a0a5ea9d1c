// SPDX-License-Identifier: Apache-2.0
#include "platform/processors.h"

#include <algorithm>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace tenon::platform {

#if defined(__linux__)

std::uint32_t usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
  return std::max(1u, std::thread::hardware_concurrency());
}

int current_processor() {
  return sched_getcpu();
}

int current_memory_node() {
  unsigned processor = 0, node = 0;
  return getcpu(&processor, &node) == 0 ? static_cast<int>(node) : -1;
}

void leave_processor(int processor) {
  if (processor < 0 || sched_getcpu() != processor) return;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<std::size_t>(processor), &others);
  if (CPU_COUNT(&others) == 0) return;
  sched_setaffinity(0, sizeof others, &others);    // moves it
  sched_setaffinity(0, sizeof allowed, &allowed);  // it stays there, and may move again later
}

#else

std::uint32_t usable_processors() {
  return std::max(1u, std::thread::hardware_concurrency());
}

int current_processor() {
  return -1;
}

int current_memory_node() {
  return -1;
}

void leave_processor(int) {}

#endif

}  // namespace tenon::platform
