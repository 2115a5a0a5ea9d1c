// SPDX-License-Identifier: Apache-2.0
// bench/machine.h - a description of the machine that a report is from.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include <tenon/context.h>

namespace tenon::bench {

/// Processor, instruction sets, memory, load, operating system, compiler, versions, device and thread budget.
nlohmann::ordered_json describe_machine(const Context& context, int threads);

/// Measures the peaks of multiply-adds in GFLOP/s on so many threads, as far as cli/roofs.h has loops for this processor: of f64, f32, bf16
/// and i8. Adds them to the machine's roofs.
std::map<DType, double> add_peaks(nlohmann::ordered_json& machine, int threads);

/// Resident memory of this process in MB; 0 if unknown.
struct ResidentMemory {
  double now = 0, peak = 0;
};
ResidentMemory resident_memory();

}  // namespace tenon::bench
