// bench/roofs.h - what the processor can do at best, measured here and now: the roof that percentages refer to.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/dtype.h>

namespace tenon::bench {

/// Fused multiply-adds on registers alone, on so many threads at once: the sum of each thread's best try, in GFLOP/s. Nothing for an
/// instruction set or dtype that has no such loop here.
std::optional<double> peak_gflops(DType dtype, int threads);

/// What memory gives to loops over arrays far larger than the caches, in GB/s of what they name: the best of several tries each.
/// Source  McCalpin: STREAM; copy is the C library's memcpy, read a sum.
struct MemoryRoofs {
  double copy = 0;   ///< a = b: one read, one write
  double scale = 0;  ///< a = s b
  double add = 0;    ///< a = b + c: two reads, one write
  double triad = 0;  ///< a = b + s c
  double read = 0;   ///< one read
};
MemoryRoofs memory_roofs(int threads, std::int64_t array_bytes = std::int64_t{128} << 20);
/// The triad of them.
double memory_bandwidth_gb_s(int threads);

}  // namespace tenon::bench
