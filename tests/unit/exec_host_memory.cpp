// SPDX-License-Identifier: Apache-2.0
// Memory of the host: shared blocks, memory of its own, threads and child processes.
#include "core/host_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "sanitized.h"
#include "testing.h"

using namespace tenon;

TEST_CASE("host memory: pieces of every size are aligned and apart from each other, from any thread and after fork()") {
  const auto fill_and_check = [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    struct Piece {
      unsigned char* bytes;
      std::uint64_t size_bytes;
      unsigned char value;
    };
    std::vector<Piece> pieces;
    bool intact = true;
    const auto release = [&](std::size_t i) {
      const Piece piece = pieces[i];
      for (std::uint64_t at = 0; at < piece.size_bytes; at += 509) intact = intact && piece.bytes[at] == piece.value;
      intact = intact && piece.bytes[piece.size_bytes - 1] == piece.value;
      free_host(piece.bytes);
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(i));
    };
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t size_bytes = 1 + random() % (std::uint64_t{1} << (random() % 24)),
                          alignment = std::uint64_t{8} << (random() % 10);
      auto* const bytes =
          static_cast<unsigned char*>(allocate_host(size_bytes, alignment, i % 3 == 0 ? HostPages::normal : HostPages::huge));
      intact = intact && bytes != nullptr && reinterpret_cast<std::uintptr_t>(bytes) % alignment == 0;
      const auto value = static_cast<unsigned char>(random());
      for (std::uint64_t at = 0; at < size_bytes; at += 509) bytes[at] = value;
      bytes[size_bytes - 1] = value;
      pieces.push_back({bytes, size_bytes, value});
      if (pieces.size() > 20) release(random() % pieces.size());
    }
    while (!pieces.empty()) release(pieces.size() - 1);
    return intact;
  };
  std::vector<std::thread> threads;
  std::atomic<int> intact = 0;
  const auto start_threads = [&] {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) threads.emplace_back([&, seed] { intact += fill_and_check(seed) ? 1 : 0; });
  };
  // The child of a process whose threads allocate: a lock that one of them held at fork() must not stay locked. AddressSanitizer's own
  // allocator does not keep that promise.
  if (!TENON_IS_SANITIZED) start_threads();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(fill_and_check(4) ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  if (TENON_IS_SANITIZED) start_threads();
  for (std::thread& thread : threads) thread.join();
  CHECK(intact == 3);
  CHECK(allocate_host(std::uint64_t{1} << 62, 64, HostPages::huge) == nullptr);
  free_host(nullptr);
}
