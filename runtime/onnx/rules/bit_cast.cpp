// SPDX-License-Identifier: Apache-2.0
// onnx/rules/bit_cast.cpp - BitCast: the bits of each element as another dtype. Between floats and integers they are computed, since Tenon
// has no view of another dtype.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "onnx/rules/bits.h"
#include "onnx/rules/numbers.h"

namespace tenon::onnx {
namespace {

/// The layout of a float of IEEE 754: digits after the point, and the exponents of the smallest and largest normal numbers. The sign is the
/// bit above `fields` values of the exponent.
struct Format {
  int digits, lowest, highest;
  /// 2^digits: the significand of 1 as an integer
  double unit() const { return std::ldexp(1.0, digits); }
  /// The value of the exponent's field that stands for infinities and NaN.
  int special() const { return highest - lowest + 2; }
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {10, -14, 15};
    case DType::bf16:
      return {7, -126, 127};
    case DType::f32:
      return {23, -126, 127};
    default:
      return {52, -1022, 1023};
  }
}

/// The value of the sign's bit, which is negative as an i64 of 64 bits.
double sign_bit(DType dtype) {
  return size_of(dtype) == 8 ? -0x1p63 : std::ldexp(1.0, static_cast<int>(8 * size_of(dtype)) - 1);
}

/// The bits of floats as i64: |x| = significand 2^(e - digits), where e is at least the lowest exponent and the significand below 2^digits
/// only for that one, has the bits (e - lowest) 2^digits + significand.
Value bits_of_floats(Value floats) {
  const Format format = format_of(floats.dtype());
  const Value x = cast_to(floats, DType::f64), magnitude = ops::abs(x);
  const Value zero = constant_like(x, 0), infinity = constant_like(x, std::numeric_limits<double>::infinity());
  const Value special = ops::logical_or(ops::is_nan(x), ops::is_inf(x));
  const Value finite = ops::where(special, zero, magnitude);
  std::vector<double> powers;
  for (int e = format.lowest; e <= format.highest; ++e) powers.push_back(std::ldexp(1.0, e));
  const Value table = x.graph().constant(Tensor::of(powers, {static_cast<std::int64_t>(powers.size())}));
  const auto as_index = [](Value condition) { return ops::cast(condition, DType::i64); };
  // The logarithm of a number next to a power of two may round to the wrong side of it.
  const Value guess = ops::clip(ops::sub(ops::floor(ops::log2(finite)), format.lowest), 0, format.highest - format.lowest);
  Value e = ops::cast(guess, DType::i64);
  const Value power = ops::gather(table, e);
  const Value above = ops::greater_equal(ops::mul(finite, 0.5), power);
  const Value below = ops::logical_and(ops::less(finite, power), ops::greater(e, constant_like(e, 0)));
  e = ops::sub(ops::add(e, as_index(above)), as_index(below));
  const Value significand = ops::cast(ops::mul(ops::div(finite, ops::gather(table, e)), format.unit()), DType::i64);
  Value bits = ops::add(ops::mul(e, format.unit()), significand);
  bits = ops::where(ops::equal(magnitude, infinity), constant_like(bits, format.special() * format.unit()), bits);
  bits = ops::where(ops::is_nan(x), constant_like(bits, (format.special() + 0.5) * format.unit()), bits);
  // -0 is not less than 0, its reciprocal is.
  const Value negative = ops::logical_or(ops::less(x, zero), ops::less(ops::reciprocal(x), zero));
  return ops::where(negative, ops::add(bits, sign_bit(floats.dtype())), bits);
}

/// The reverse: floats of these bits, which are those of an i64.
Value floats_of_bits(Value bits, DType dtype) {
  const Format format = format_of(dtype);
  const Value zero = constant_like(bits, 0), sign = constant_like(bits, sign_bit(dtype));
  const Value negative = size_of(dtype) == 8 ? ops::less(bits, zero) : ops::greater_equal(bits, sign);
  const Value magnitude = ops::where(negative, ops::sub(bits, sign), bits);
  const Value exponent = ops::div(magnitude, format.unit());
  const Value digits = ops::sub(magnitude, ops::mul(exponent, format.unit()));
  std::vector<double> powers;
  for (int i = 0; i < format.special(); ++i) powers.push_back(std::ldexp(1.0, std::max(i, 1) - 1 + format.lowest - format.digits));
  powers.push_back(std::numeric_limits<double>::infinity());
  const Value table = bits.graph().constant(Tensor::of(powers, {static_cast<std::int64_t>(powers.size())}));
  const Value normal = ops::greater(exponent, zero);
  const Value significand = ops::add(digits, ops::where(normal, constant_like(bits, format.unit()), zero));
  const Value value = ops::mul(ops::cast(significand, DType::f64), ops::gather(table, exponent));
  const Value is_nan = ops::greater(magnitude, constant_like(bits, format.special() * format.unit()));
  const Value nan = constant_like(value, std::numeric_limits<double>::quiet_NaN());
  return cast_to(ops::where(is_nan, nan, ops::where(negative, ops::neg(value), value)), dtype);
}

/// An i64 with the bits of integers as its lowest ones, zeros above.
Value zero_extended(Value x) {
  switch (size_of(x.dtype())) {
    case 2:
      return ops::cast(cast_to(x, DType::u16), DType::i64);
    case 4:
      return ops::cast(cast_to(x, DType::u32), DType::i64);
    default:
      return cast_to(x, DType::i64);
  }
}

}  // namespace

void bit_cast(Node& node) {
  node.integer("to");  // required
  const DType to = node.element_type("to", DType::none), from = node.dtype(0);
  if (size_of(from) != size_of(to)) {
    node.fail(fmt::format("expected dtypes of the same size, got {} of {} bytes and {} of {}", name_of(from), size_of(from), name_of(to),
                          size_of(to)));
  }
  if (to == from) return node.output(0, node.operand(0));
  if (!is_floating(from) && !is_floating(to)) return node.output(0, ops::cast(node.input(0), to));
  if (const Tensor known = node.known_if_constant(0); known.defined()) {
    Tensor result = Tensor::empty(to, known.shape());
    if (known.count() > 0) std::memcpy(result.raw(), known.contiguous().raw(), static_cast<std::size_t>(known.size_bytes()));
    return node.output(0, result);
  }
  const Value x = node.input(0), bits = is_floating(from) ? bits_of_floats(x) : zero_extended(x);
  node.output(0, is_floating(to) ? floats_of_bits(bits, to) : ops::cast(bits, to));
}

}  // namespace tenon::onnx
