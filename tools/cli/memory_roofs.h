// SPDX-License-Identifier: Apache-2.0
// cli/memory_roofs.h - the measured bandwidth of the host's memory, which percentages of roof refer to.
#pragma once

#include <cstdint>

namespace tenon::cli {

/// Memory bandwidth of loops over three arrays, on this many threads at once, but at most one for each processor, in GB/s of the arrays
/// read and written: the best of several tries, from the start of the first thread to the end of the last one. Arrays that caches hold, as
/// those of large servers may, give the bandwidth of caches. They are in huge pages where the system gives them, as packed weights are.
/// Source  McCalpin: STREAM; copy is the C library's memcpy, read is sum().
struct MemoryRoofs {
  double copy = 0;   ///< a = b: one read, one write
  double scale = 0;  ///< a = s b
  double add = 0;    ///< a = b + c: two reads, one write
  double triad = 0;  ///< a = b + s c
  double read = 0;   ///< one read, of three arrays one after the other

  /// The fastest of the five, mostly that of reads: what is written is also read first, unless stores bypass the caches, and reads and
  /// writes take turns. A kernel whose data comes from memory is not expected to be faster.
  double peak() const;
};
MemoryRoofs memory_roofs(int thread_count, std::int64_t array_bytes = std::int64_t{128} << 20);

/// The sum of the elements, which are read once each with the widest loads of the processor. The order of the additions is not defined.
float sum(const float* values, std::int64_t count);

}  // namespace tenon::cli
