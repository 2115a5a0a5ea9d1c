// SPDX-License-Identifier: Apache-2.0
// onnx/rules/numbers.h - arithmetic on each number dtype of ONNX, also those that Tenon's ops do not compute with.
#pragma once

#include <tenon/functions.h>

#include "onnx/rules/dtypes.h"

namespace tenon::onnx {

bool is_unsigned(DType dtype);

/// A constant of rank 0 and the dtype of x.
Value constant_like(Value x, double value);

/// f of a and b, where integers wrap around.
template <Value (*f)(Value, Value)>
Value wrapping(Value a, Value b) {
  return computed_in(arithmetic_dtype(a.dtype()), f, a, b);
}
/// The same for one operand.
template <Value (*f)(Value)>
Value wrapping_unary(Value x) {
  return computed_in(arithmetic_dtype(x.dtype()), f, x);
}

/// f of x, which consists of several ops: f16 and bf16 are computed in f32, so that each result is rounded once.
template <Value (*f)(Value)>
Value composite(Value x) {
  const bool narrow = x.dtype() == DType::f16 || x.dtype() == DType::bf16;
  return computed_in(narrow ? DType::f32 : x.dtype(), f, x);
}

Value absolute(Value x);
Value sign_of(Value x);
Value maximum(Value a, Value b);
Value minimum(Value a, Value b);

/// a / b; integers truncate. Exact for each dtype, u64 included. An integer divided by 0 is an error of the run, where other runtimes give
/// any result.
Value divide(Value a, Value b);

/// Of the bits of a u64 in an i64: the bits shifted right by one, with 0 as the highest.
Value half_of_unsigned(Value x);

/// The remainder of a / b, with the sign of b, or of a if `sign_of_dividend`. Exact for integers and, as long as the quotient is below
/// 2^28, for floats of at most 32 bits; remainders of other floats have the rounding errors of a - n b in f64.
Value remainder(Value a, Value b, bool sign_of_dividend);

/// x in a dtype whose elements Tenon compares and reduces, in the same order; `unordered` returns to the dtype of x.
Value ordered(Value x);
Value unordered(Value y, DType dtype);

}  // namespace tenon::onnx
