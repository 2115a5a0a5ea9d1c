// SPDX-License-Identifier: Apache-2.0
// onnx/rules/numbers.cpp - arithmetic on each number dtype of ONNX.
#include "onnx/rules/numbers.h"

#include <tenon/tensor.h>

namespace tenon::onnx {
namespace {

/// True if Max, Min and the like take the dtype.
bool is_native(DType dtype) {
  return arithmetic_dtype(dtype) == dtype;
}

/// The i64 with the highest bit only; adding it to the bits of a u64 keeps the order of the u64 in an i64.
constexpr double highest_bit = -0x1p63;

/// a / b of u64 by divisions of i64: half of a, as a positive i64, gives a quotient that is at most 1 too small. A divisor with the highest
/// bit fits once or not at all.
/// Source  Warren: Hacker's Delight (2013), section 9-3.
Value divide_u64(Value a, Value b) {
  const Value x = ops::cast(a, DType::i64), y = ops::cast(b, DType::i64);
  const Value low = ops::mul(ops::div(half_of_unsigned(x), y), 2);
  const Value rest = ops::cast(ops::sub(x, ops::mul(low, y)), DType::u64);
  const Value quotient = ops::add(low, ops::cast(ops::greater_equal(rest, b), DType::i64));
  const Value once = ops::cast(ops::greater_equal(a, b), DType::i64);
  return ops::cast(ops::where(ops::less(y, constant_like(y, 0)), once, quotient), DType::u64);
}

/// x - n y with n = floor(x / y), in f64. The rounded quotient may cross an integer; then n is corrected. Only x and y carry gradients,
/// since n is a step function: those of the remainder are 1 and -n.
Value floating_remainder(Value x, Value y) {
  const Value n = ops::floor(ops::div(x, y)), side = ops::sign(y);
  const Value rest = ops::mul(ops::sub(x, ops::mul(n, y)), side);
  const Value zero = constant_like(x, 0), one = constant_like(x, 1);
  const Value too_large = ops::where(ops::less(rest, zero), one, zero);
  const Value too_small = ops::where(ops::greater_equal(rest, ops::abs(y)), one, zero);
  const Value exact = ops::sub(x, ops::mul(ops::add(ops::sub(n, too_large), too_small), y));
  // An infinite divisor leaves x, or is the result itself if the signs differ.
  const Value infinite = ops::logical_and(ops::is_inf(y), ops::logical_not(ops::is_inf(x)));
  const Value differs = ops::less(ops::mul(x, side), zero);
  return ops::where(infinite, ops::where(differs, y, x), exact);
}

}  // namespace

bool is_unsigned(DType dtype) {
  return dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32 || dtype == DType::u64;
}

Value constant_like(Value x, double value) {
  return x.graph().constant(Tensor::full(x.dtype(), {}, value));
}

Value absolute(Value x) {
  return is_unsigned(x.dtype()) ? x : wrapping_unary<ops::abs>(x);
}

Value sign_of(Value x) {
  return is_unsigned(x.dtype()) ? ops::cast(ops::cast(x, DType::boolean), x.dtype()) : wrapping_unary<ops::sign>(x);
}

Value maximum(Value a, Value b) {
  return is_native(a.dtype()) ? ops::maximum(a, b) : ops::where(ops::greater(a, b), a, b);
}

Value minimum(Value a, Value b) {
  return is_native(a.dtype()) ? ops::minimum(a, b) : ops::where(ops::less(a, b), a, b);
}

Value divide(Value a, Value b) {
  return a.dtype() == DType::u64 ? divide_u64(a, b) : wrapping<ops::div>(a, b);
}

Value half_of_unsigned(Value x) {
  const Value without_sign = ops::sub(x, highest_bit);
  return ops::where(ops::less(x, constant_like(x, 0)), ops::add(ops::div(without_sign, 2), 0x1p62), ops::div(x, 2));
}

Value remainder(Value a, Value b, bool sign_of_dividend) {
  const DType dtype = a.dtype();
  if (is_floating(dtype)) {
    const Value x = cast_to(a, DType::f64);
    Value y = cast_to(b, DType::f64);
    if (sign_of_dividend) {
      y = ops::abs(y);
      y = ops::where(ops::less(x, constant_like(x, 0)), ops::neg(y), y);
    }
    return cast_to(floating_remainder(x, y), dtype);
  }
  const DType wide = arithmetic_dtype(dtype);
  const Value x = cast_to(a, wide), y = cast_to(b, wide);
  const Value quotient = dtype == DType::u64 ? cast_to(divide(a, b), wide) : ops::div(x, y);
  Value rest = ops::sub(x, ops::mul(quotient, y));
  if (!sign_of_dividend && !is_unsigned(dtype)) {
    const Value zero = constant_like(rest, 0);
    const Value differs = ops::logical_xor(ops::less(rest, zero), ops::less(y, zero));
    rest = ops::where(ops::logical_and(differs, ops::not_equal(rest, zero)), ops::add(rest, y), rest);
  }
  return cast_to(rest, dtype);
}

Value ordered(Value x) {
  if (x.dtype() == DType::boolean) return ops::cast(x, DType::i32);
  if (x.dtype() == DType::u64) return ops::add(ops::cast(x, DType::i64), highest_bit);
  return cast_to(x, arithmetic_dtype(x.dtype()));
}

Value unordered(Value y, DType dtype) {
  return cast_to(dtype == DType::u64 ? ops::sub(y, highest_bit) : y, dtype);
}

}  // namespace tenon::onnx
