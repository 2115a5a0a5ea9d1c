// SPDX-License-Identifier: Apache-2.0
#include "platform/machine.h"

#include <windows.h>
// After windows.h:
#include <psapi.h>
#if defined(__x86_64__) || defined(_M_X64)
#include <intrin.h>
#endif

namespace tenon::platform {
namespace {

#if defined(__GNUC__) && defined(__x86_64__)
unsigned long long extended_control_register() {
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));  // _xgetbv needs an option of the compiler
  return (static_cast<unsigned long long>(high) << 32) | low;
}
#elif defined(_M_X64)
unsigned long long extended_control_register() {
  return _xgetbv(0);
}
#endif

}  // namespace

std::string processor_features() {
#if defined(__x86_64__) || defined(_M_X64)
  int basic[4] = {}, extended[4] = {}, further[4] = {};
  __cpuid(basic, 0);
  const int leaves = basic[0];
  __cpuid(basic, 1);
  if (leaves >= 7) {
    __cpuidex(extended, 7, 0);
    if (extended[0] >= 1) __cpuidex(further, 7, 1);
  }
  // The registers that the system saves when it changes from one thread to another: XCR0, where the processor has it.
  const bool saves = (basic[2] & (1 << 27)) != 0;
  const unsigned long long saved = saves ? extended_control_register() : 0;
  const bool avx = (saved & 0x6) == 0x6, avx512 = (saved & 0xE6) == 0xE6, amx = (saved & 0x60000) == 0x60000;
  const auto has = [](int bits, int bit) { return ((static_cast<unsigned>(bits) >> bit) & 1U) != 0; };
  std::string text;
  const auto add = [&](const char* name, bool present) {
    if (present) text += (text.empty() ? "" : " ") + std::string(name);
  };
  add("sse4_2", has(basic[2], 20));
  add("avx", avx && has(basic[2], 28));
  add("f16c", avx && has(basic[2], 29));
  add("fma", avx && has(basic[2], 12));
  add("avx2", avx && has(extended[1], 5));
  add("avx_vnni", avx && has(further[0], 4));
  add("avx512f", avx512 && has(extended[1], 16));
  add("avx512bw", avx512 && has(extended[1], 30));
  add("avx512_vnni", avx512 && has(extended[2], 11));
  add("avx512_bf16", avx512 && has(further[0], 5));
  add("avx512_fp16", avx512 && has(extended[3], 23));
  add("amx_bf16", amx && has(extended[3], 22));
  add("amx_tile", amx && has(extended[3], 24));
  return text;
#else
  return {};
#endif
}

double load_average() {
  return -1;
}

ResidentMemory resident_memory() {
  PROCESS_MEMORY_COUNTERS counters{};
  counters.cb = sizeof counters;
  if (K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters) == 0) return {};
  return {counters.WorkingSetSize, counters.PeakWorkingSetSize};
}

}  // namespace tenon::platform
