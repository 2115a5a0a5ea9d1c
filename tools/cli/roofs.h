// SPDX-License-Identifier: Apache-2.0
// cli/roofs.h - the measured peaks of the arithmetic of the processor, which percentages of roof refer to.
#pragma once

#include <optional>

#include <tenon/dtype.h>

namespace tenon::cli {

/// Peak rate of multiply-adds on registers, on this many threads at once, but at most one for each processor: the sum of the best try of
/// each thread, in GFLOP/s. f32, f64; bf16 with sums of f32, and i8, which stands for u8 as well, with sums of i32: at the rates of f32 and
/// of 16-bit integers where the processor has no instruction for them. It is that of the instructions for vectors; empty for a dtype or an
/// instruction set without a measuring loop, and for bf16 and i8 where the processor has matrix registers (AMX), which have none.
std::optional<double> peak_gflops(DType dtype, int threads);

}  // namespace tenon::cli
