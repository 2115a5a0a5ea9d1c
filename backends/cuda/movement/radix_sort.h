// SPDX-License-Identifier: Apache-2.0
// radix_sort.h - a stable sort of (key, value) pairs on the device, without synchronizing with the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.h"

namespace tenon::cuda {

/// The maximum number of pairs.
inline constexpr std::int64_t max_sorted = 0xFFFFFFFF;

/// Double buffers of a sort, whose input is in keys[0] and values[0].
struct SortBuffers {
  std::uint64_t* keys[2];
  std::uint32_t* values[2];
  std::uint32_t* counts;
};

/// Bytes of scratch memory for `count` pairs.
std::size_t sort_bytes(std::int64_t count);
/// The buffers in scratch memory, which is aligned to 64.
SortBuffers sort_buffers(void* scratch, std::int64_t count);

/// Sorts by the lowest `bits` bits of the keys; the others must be 0.
/// Returns  0 or 1: the buffer with the sorted pairs.
/// Source   Knuth: The Art of Computer Programming, volume 3, section 5.2.5 (least significant digit first).
int sort_pairs(Stream& stream, const SortBuffers& buffers, std::int64_t count, int bits);

/// The number of bits of integers in [0, n).
int bits_below(std::int64_t n);

}  // namespace tenon::cuda
