// SPDX-License-Identifier: Apache-2.0
// cpu_facts.h - what the operating system tells about the processor and the memory: posix/ or windows/.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::sdk {

/// What is unknown is empty or zero.
struct CpuFacts {
  std::string name;  ///< as in "Intel(R) Xeon(R) Processor"
  std::uint32_t clock_khz = 0;
  std::uint64_t memory_size_bytes = 0, memory_free_bytes = 0;
};
CpuFacts cpu_facts();

}  // namespace tenon::sdk
