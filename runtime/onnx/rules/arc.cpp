// SPDX-License-Identifier: Apache-2.0
// onnx/rules/arc.cpp - inverse trigonometric functions of the ops that Tenon has.
#include "onnx/rules/arc.h"

#include <numbers>

#include <tenon/functions.h>

#include "onnx/rules/numbers.h"

namespace tenon::onnx {
namespace {

/// tan(atan(z) / 2) = z / (1 + sqrt(1 + z^2))
Value half_angle(Value z) {
  return ops::div(z, ops::add(ops::sqrt(ops::add(ops::square(z), 1)), 1));
}

/// Beyond 1 the angle is a right angle less that of 1 / x. Halved twice it is at most pi / 16: there |w| < 0.2, and twelve terms of the
/// series w - w^3 / 3 + w^5 / 5 ... are exact to the digits of f64.
Value atan_in_dtype(Value x) {
  const Value one = constant_like(x, 1);
  const Value beyond = ops::greater(ops::abs(x), one);
  // The operand of the reciprocal is 1 where it is not used, so that no gradient is infinite times 0.
  const Value w = half_angle(half_angle(ops::where(beyond, ops::reciprocal(ops::where(beyond, x, one)), x)));
  const Value square = ops::square(w);
  constexpr int terms = 12;
  Value sum = constant_like(x, -1.0 / (2 * terms - 1));
  for (int i = terms - 2; i >= 0; --i) sum = ops::add(ops::mul(sum, square), (i % 2 == 0 ? 1.0 : -1.0) / (2 * i + 1));
  const Value angle = ops::mul(ops::mul(w, sum), 4);
  return ops::where(beyond, ops::sub(ops::mul(ops::sign(x), std::numbers::pi / 2), angle), angle);
}

}  // namespace

Value atan_of(Value x) {
  return composite<atan_in_dtype>(x);
}

}  // namespace tenon::onnx
