// SPDX-License-Identifier: Apache-2.0
// Memory of the host: shared blocks, memory of its own, threads.
#include "core/host_memory.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "host_memory_use.h"
#include "testing.h"

using namespace tenon;

TEST_CASE("host memory: pieces of every size are aligned and apart from each other, from any thread") {
  std::vector<std::thread> threads;
  std::atomic<int> intact = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) threads.emplace_back([&, seed] { intact += test::use_host_memory(seed) ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  CHECK(intact == 3);
  CHECK(allocate_host(std::uint64_t{1} << 62, 64, HostPages::huge) == nullptr);
  free_host(nullptr);
}
