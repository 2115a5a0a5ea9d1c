// SPDX-License-Identifier: Apache-2.0
// host_memory_use.h - pieces of host memory of many sizes, filled, checked and freed in a random order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "core/host_memory.h"

namespace tenon::test {

/// False if a piece is not aligned, or if one changed what another holds.
inline bool use_host_memory(std::uint64_t seed) {
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
    const std::uint64_t size_bytes = 1 + random() % (std::uint64_t{1} << (random() % 24)), alignment = std::uint64_t{8} << (random() % 10);
    auto* const bytes = static_cast<unsigned char*>(allocate_host(size_bytes, alignment, i % 3 == 0 ? HostPages::normal : HostPages::huge));
    intact = intact && bytes != nullptr && reinterpret_cast<std::uintptr_t>(bytes) % alignment == 0;
    const auto value = static_cast<unsigned char>(random());
    for (std::uint64_t at = 0; at < size_bytes; at += 509) bytes[at] = value;
    bytes[size_bytes - 1] = value;
    pieces.push_back({bytes, size_bytes, value});
    if (pieces.size() > 20) release(random() % pieces.size());
  }
  while (!pieces.empty()) release(pieces.size() - 1);
  return intact;
}

}  // namespace tenon::test
