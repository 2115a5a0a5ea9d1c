// SPDX-License-Identifier: Apache-2.0
// bench/machine.h - a description of the machine that a report is from.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include <tenon/context.h>

namespace tenon::bench {

// Of this machine; "unknown" where the system does not tell.
std::string processor_name();
std::string instruction_sets();  ///< those that matter to numeric code
std::string memory_size();
std::string operating_system();

/// Processor, instruction sets, memory, load, operating system, compiler, versions, device and thread budget.
nlohmann::ordered_json describe_machine(const Context& context, int threads);

/// Peak resident memory of this process.
double peak_memory_mb();

}  // namespace tenon::bench
