// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include <tenon/sdk/rounding.h>
#include <tenon/sdk/scratch_arena.h>

namespace tenon::sdk {
namespace {

TEST_CASE("sdk: quotients and sizes are rounded up") {
  CHECK(ceil_div(0, 4) == 0);
  CHECK(ceil_div(8, 4) == 2);
  CHECK(ceil_div(9, 4) == 3);
  CHECK(round_up(9, 4) == 12);
  CHECK(round_up(12, 4) == 12);
  CHECK(aligned_size(0) == 0);
  CHECK(aligned_size(65) == 128);
  CHECK(aligned_size(65, 256) == 256);
}

TEST_CASE("sdk: blocks of an arena are aligned, disjoint, and within the bytes that it counts without memory") {
  const auto allocate_all = [](ScratchArena& arena) {
    return std::array<char*, 3>{arena.allocate<char>(1), reinterpret_cast<char*>(arena.allocate<double>(40)), arena.allocate<char>(0)};
  };
  alignas(64) static std::array<char, 2048> memory;
  for (const std::size_t alignment : {std::size_t{64}, std::size_t{256}}) {
    ScratchArena counted(nullptr, alignment);
    for (const char* const block : allocate_all(counted)) CHECK(block == nullptr);
    CHECK(counted.rest() == nullptr);
    REQUIRE(counted.required_bytes() + 192 <= memory.size());
    for (const std::size_t start : {0, 64, 128, 192}) {
      ScratchArena arena(memory.data() + start, alignment);
      const std::array<char*, 3> blocks = allocate_all(arena);
      for (const char* const block : blocks) CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
      CHECK(blocks[0] >= memory.data() + start);
      CHECK(blocks[1] >= blocks[0] + 1);
      CHECK(blocks[2] >= blocks[1] + 320);
      CHECK(static_cast<char*>(arena.rest()) <= memory.data() + start + counted.required_bytes());
    }
  }
}

}  // namespace
}  // namespace tenon::sdk
