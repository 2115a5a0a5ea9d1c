// SPDX-License-Identifier: Apache-2.0
// platform/machine.h - facts about processor and memory that only reports need.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::platform {

/// What the processor and the system offer, separated by spaces, in the words of /proc/cpuinfo: "fma avx2 avx512f"; empty if unknown. On
/// Windows only those that matter to numeric code.
std::string processor_features();

/// The number of threads that have run or waited for a processor in the last minute, on average; negative if unknown.
double load_average();

/// Of this process; 0 if unknown.
struct ResidentMemory {
  std::uint64_t now_bytes = 0, peak_bytes = 0;
};
ResidentMemory resident_memory();

}  // namespace tenon::platform
