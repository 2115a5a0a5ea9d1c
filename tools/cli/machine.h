// SPDX-License-Identifier: Apache-2.0
// cli/machine.h - a description of the machine and of the software in use.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
struct Config;
}

namespace tenon::cli {

// Of this machine; "unknown" where the system does not tell.
std::string processor_name();
std::string instruction_sets();  ///< those that matter to numeric code
std::string memory_size();
std::string operating_system();

/// The threads that a loop of this configuration may use.
std::uint32_t thread_budget(const Config& config);

/// (label, value) pairs: processor, cores, describe_parallelism(threads), memory, operating system, compiler, libraries.
std::vector<std::pair<std::string, std::string>> describe_machine(std::uint32_t threads);

}  // namespace tenon::cli
