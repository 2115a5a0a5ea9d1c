// SPDX-License-Identifier: Apache-2.0
// cli/roofs.h - the measured peaks of the processor, which percentages of roof refer to.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/dtype.h>

namespace tenon::cli {

/// Peak rate of multiply-adds on registers, on this many threads at once: the sum of the best try of each thread, in GFLOP/s. f32, f64;
/// bf16 with sums of f32, and i8, which stands for u8 as well, with sums of i32: at the rates of f32 and of 16-bit integers where the
/// processor has no instruction for them. It is that of the instructions for vectors; empty for a dtype or an instruction set without a
/// measuring loop, and for bf16 and i8 where the processor has matrix registers (AMX), which have none.
std::optional<double> peak_gflops(DType dtype, int threads);

/// Memory bandwidth of loops over arrays far larger than the caches, in GB/s of the arrays read and written: the best of several tries.
/// Source  McCalpin: STREAM; copy is the C library's memcpy, read a sum.
struct MemoryRoofs {
  double copy = 0;   ///< a = b: one read, one write
  double scale = 0;  ///< a = s b
  double add = 0;    ///< a = b + c: two reads, one write
  double triad = 0;  ///< a = b + s c
  double read = 0;   ///< one read
};
MemoryRoofs memory_roofs(int threads, std::int64_t array_bytes = std::int64_t{128} << 20);
/// The triad of memory_roofs().
double memory_bandwidth_gb_s(int threads);

}  // namespace tenon::cli
