// SPDX-License-Identifier: Apache-2.0
// op_family.h - names and helpers that the files of op families share.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "case.h"

namespace tenon::conformance {

inline constexpr tenon_dtype f16 = TENON_DTYPE_F16;
inline constexpr tenon_dtype bf16 = TENON_DTYPE_BF16;
inline constexpr tenon_dtype f32 = TENON_DTYPE_F32;
inline constexpr tenon_dtype f64 = TENON_DTYPE_F64;
inline constexpr tenon_dtype i32 = TENON_DTYPE_I32;
inline constexpr tenon_dtype i64 = TENON_DTYPE_I64;
inline constexpr tenon_dtype u8 = TENON_DTYPE_U8;
inline constexpr tenon_dtype u64 = TENON_DTYPE_U64;
inline constexpr tenon_dtype boolean = TENON_DTYPE_BOOL;
inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Tolerances of results that must be exact, with the reason.
inline constexpr Tolerance moved = Tolerance{"Elements are copied: the same bits."}.with_signed_zeros();
inline constexpr Tolerance decided{"The result is a boolean or an index: it is right or wrong."};
inline constexpr Tolerance specified{
    "Every bit is specified: plugins/abi/README.md says how it follows from key, stream and the element's index."};

/// `full`, or `reduced` if reduced sizes were requested.
inline std::int64_t sized(std::int64_t full, std::int64_t reduced) {
  return small_sizes() ? reduced : full;
}

inline OperandSpec operand(Dims shape, Values values = {}, tenon_dtype dtype = TENON_DTYPE_NONE) {
  return {std::move(shape), values, dtype, true};
}
inline ResultSpec result(Dims shape, tenon_dtype dtype = TENON_DTYPE_NONE) {
  return {std::move(shape), dtype, true};
}

/// u64[2] = (seed, step).
inline OperandSpec key() {
  return operand({2}, {.low = 0, .high = 1e15, .whole = true}, u64);
}

}  // namespace tenon::conformance
