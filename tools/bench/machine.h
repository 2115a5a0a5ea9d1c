// SPDX-License-Identifier: Apache-2.0
// bench/machine.h - a description of the machine that a report is from.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include <tenon/context.h>

namespace tenon::bench {

/// Processor, instruction sets, memory, load, operating system, compiler, versions, device and thread budget.
nlohmann::ordered_json describe_machine(const Context& context, int threads);

/// Resident memory of this process in MB; 0 if unknown.
struct ResidentMemory {
  double now = 0, peak = 0;
};
ResidentMemory resident_memory();

}  // namespace tenon::bench
