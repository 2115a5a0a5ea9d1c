// tenon/machine.h - what a report says about the machine and the programs it ran with.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tenon::cli {

/// (what, value): processor, instruction sets, threads, memory, operating system, compiler, libraries.
std::vector<std::pair<std::string, std::string>> describe_machine();

}  // namespace tenon::cli
