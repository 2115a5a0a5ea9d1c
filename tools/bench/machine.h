// SPDX-License-Identifier: Apache-2.0
// bench/machine.h - a description of the machine that a report is from.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include <tenon/context.h>

namespace tenon::bench {

/// Processor, instruction sets, memory, load, operating system, compiler, versions, device and thread budget.
nlohmann::ordered_json describe_machine(const Context& context, int threads);

/// Peak resident memory of this process.
double peak_memory_mb();

}  // namespace tenon::bench
