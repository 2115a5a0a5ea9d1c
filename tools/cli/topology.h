// SPDX-License-Identifier: Apache-2.0
// cli/topology.h - how the processor computes in parallel: threads, vectors, memory nodes (NUMA).
#pragma once

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "platform/path.h"

namespace tenon::cli {

/// The memory nodes and their CPUs, as in "0-3,8"; empty if the system does not tell.
inline std::map<int, std::string> numa_nodes(const std::filesystem::path& folder = "/sys/devices/system/node") {
  std::map<int, std::string> nodes;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) {
    const std::string name = platform::text_of(entry.path().filename());
    int id = -1;
    if (!name.starts_with("node") || std::from_chars(name.data() + 4, name.data() + name.size(), id).ptr != name.data() + name.size())
      continue;
    std::ifstream list(entry.path() / "cpulist");
    if (list) std::getline(list, nodes[id]);
  }
  return nodes;
}

/// Width of the vectors of these instruction sets in bits; 0: none that is known.
inline int vector_bits(const std::string& instruction_sets) {
  for (const auto& [name, bits] : {std::pair{"avx512f", 512}, {"avx", 256}, {"sse4_2", 128}, {"asimd", 128}}) {
    if (instruction_sets.find(name) != std::string::npos) return bits;
  }
  return 0;
}

/// (label, value) pairs: Flynn's class of the processor with its threads and vectors, the memory nodes, and where a loop's threads run.
std::vector<std::pair<std::string, std::string>> describe_parallelism(std::uint32_t threads);

}  // namespace tenon::cli
