// radix_sort.h - pairs in the order of their keys; equal keys keep their order. On the device, without a look at the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device.h"

namespace tenon::cuda {

/// How many pairs a sort takes at most.
inline constexpr std::int64_t most_sorted = 0xFFFFFFFF;

/// What a sort works on: pairs are in keys[0] and values[0] before it, and go to and fro.
struct SortRoom {
  std::uint64_t* keys[2];
  std::uint32_t* values[2];
  std::uint32_t* counts;
};

/// Bytes of scratch memory for so many pairs.
std::size_t sort_bytes(std::int64_t count);
/// The room in such memory, aligned to 64.
SortRoom sort_room(void* scratch, std::int64_t count);

/// Sorts by the lowest `bits` of the keys; those above are 0.
/// Returns  0 or 1: where the sorted pairs are.
/// Source   Knuth: The Art of Computer Programming, volume 3, section 5.2.5 (by digits from the lowest on).
int sort_pairs(Stream& stream, const SortRoom& room, std::int64_t count, int bits);

/// Bits that numbers in [0, n) need.
int bits_below(std::int64_t n);

}  // namespace tenon::cuda
