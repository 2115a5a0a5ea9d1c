// bench/roofs.h - what the processor can do at best, measured here and now: the roof that percentages refer to.
#pragma once

#include <optional>

#include <tenon/dtype.h>

namespace tenon::bench {

/// Fused multiply-adds on registers alone, on so many threads at once: the sum of each thread's best try, in GFLOP/s. Nothing for an
/// instruction set or dtype that has no such loop here.
std::optional<double> peak_gflops(DType dtype, int threads);

/// a = b + s c over arrays far larger than the caches: the best of several tries, in GB/s, counting two reads and one write an element.
double memory_bandwidth_gb_s(int threads);

}  // namespace tenon::bench
