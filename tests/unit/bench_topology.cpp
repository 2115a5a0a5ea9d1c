// SPDX-License-Identifier: Apache-2.0
// Memory nodes and vector widths.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>

#include "../../tools/cli/topology.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE_FIXTURE(InFolder, "topology: the memory nodes are those of the system, with their CPUs") {
  for (const char* node : {"node0", "node1", "node10", "nodelist"}) std::filesystem::create_directories(folder.path() + "/" + node);
  folder.write("node0/cpulist", "0-3,8\n");
  folder.write("node1/cpulist", "4-7\n");
  folder.write("node10/cpulist", "\n");  // memory without CPUs
  folder.write("possible", "0-10\n");
  CHECK(cli::numa_nodes(folder.path()) == std::map<int, std::string>{{0, "0-3,8"}, {1, "4-7"}, {10, ""}});
  CHECK(cli::numa_nodes(folder.file("nowhere")).empty());
}

TEST_CASE("topology: the widest vectors of the instruction sets count") {
  CHECK(cli::vector_bits("fma sse4_2 avx f16c avx2 avx512f") == 512);
  CHECK(cli::vector_bits("fma sse4_2 avx f16c avx2") == 256);
  CHECK(cli::vector_bits("sse4_2") == 128);
  CHECK(cli::vector_bits("asimd") == 128);
  CHECK(cli::vector_bits("unknown") == 0);
}
