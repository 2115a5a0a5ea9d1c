// SPDX-License-Identifier: Apache-2.0
// tenon/elementwise_functions.h - elementwise ops without attributes as functions on values of a
// graph. Included by tenon/functions.h. Written by `python3 tests/abi/functions.py --write` from
// tenon/ops.def, never by hand.
#pragma once

#include <tenon/api.h>
#include <tenon/graph.h>

namespace tenon::ops {

/// y = a + b, shapes broadcast. Integers wrap.
TENON_API Value add(Value a, Value b);
TENON_API Value add(Value a, double b);  ///< b is a constant of a's dtype
/// y = a - b, shapes broadcast. Integers wrap.
TENON_API Value sub(Value a, Value b);
TENON_API Value sub(Value a, double b);  ///< b is a constant of a's dtype
/// y = a * b, shapes broadcast. Integers wrap.
TENON_API Value mul(Value a, Value b);
TENON_API Value mul(Value a, double b);  ///< b is a constant of a's dtype
/// y = a / b, shapes broadcast. Floats divide by zero as in IEEE 754; integers truncate, and
/// division by zero is an error at execution.
TENON_API Value div(Value a, Value b);
TENON_API Value div(Value a, double b);  ///< b is a constant of a's dtype
/// y = a^b as IEEE 754's pow, shapes broadcast. A negative a gives NaN unless b is an integer.
TENON_API Value pow(Value a, Value b);
TENON_API Value pow(Value a, double b);  ///< b is a constant of a's dtype
/// y = the larger of a and b, shapes broadcast. NaN propagates; equal operands share the gradient.
TENON_API Value maximum(Value a, Value b);
TENON_API Value maximum(Value a, double b);  ///< b is a constant of a's dtype
/// y = the smaller of a and b, shapes broadcast. NaN propagates; equal operands share the gradient.
TENON_API Value minimum(Value a, Value b);
TENON_API Value minimum(Value a, double b);  ///< b is a constant of a's dtype
/// y = (a == b) as bool, shapes broadcast. NaN equals nothing; -0 equals 0.
TENON_API Value equal(Value a, Value b);
/// y = (a < b) as bool, shapes broadcast. False if either is NaN; false is less than true.
TENON_API Value less(Value a, Value b);
/// y = (a <= b) as bool, shapes broadcast. False if either is NaN; false is less than true.
TENON_API Value less_equal(Value a, Value b);
/// y = (a > b) as bool, shapes broadcast. False if either is NaN; true is greater than false.
TENON_API Value greater(Value a, Value b);
/// y = (a >= b) as bool, shapes broadcast. False if either is NaN; true is greater than false.
TENON_API Value greater_equal(Value a, Value b);
/// y = a and b, shapes broadcast.
TENON_API Value logical_and(Value a, Value b);
/// y = a or b, shapes broadcast.
TENON_API Value logical_or(Value a, Value b);
/// y = a or b but not both, shapes broadcast.
TENON_API Value logical_xor(Value a, Value b);
/// y = not x.
TENON_API Value logical_not(Value x);
/// y = whether x is NaN.
TENON_API Value is_nan(Value x);
/// y = whether x is infinite, of either sign.
TENON_API Value is_inf(Value x);
/// y = -x. The lowest integer wraps to itself.
TENON_API Value neg(Value x);
/// y = max(0, x). NaN propagates; the derivative at 0 is 0.
TENON_API Value relu(Value x);
/// y = 1 / (1 + exp(-x)).
TENON_API Value sigmoid(Value x);
/// y = tanh(x).
TENON_API Value tanh(Value x);
/// y = |x|. The lowest integer wraps to itself; the derivative at 0 is 0.
TENON_API Value abs(Value x);
/// y = -1, 0 or 1 for a negative, zero or positive x. NaN propagates; the derivative is 0.
TENON_API Value sign(Value x);
/// y = the smallest integer not below x. The derivative is 0.
TENON_API Value ceil(Value x);
/// y = the largest integer not above x. The derivative is 0.
TENON_API Value floor(Value x);
/// y = the nearest integer, ties to even. The derivative is 0.
TENON_API Value round(Value x);
/// y = the square root of x; NaN below 0.
TENON_API Value sqrt(Value x);
/// y = 1 / sqrt(x); infinite at 0, NaN below.
TENON_API Value rsqrt(Value x);
/// y = 1 / x.
TENON_API Value reciprocal(Value x);
/// y = e^x.
TENON_API Value exp(Value x);
/// y = e^x - 1, accurate for small x.
TENON_API Value expm1(Value x);
/// y = the natural logarithm of x; -inf at 0, NaN below.
TENON_API Value log(Value x);
/// y = the logarithm of x to base 2; -inf at 0, NaN below.
TENON_API Value log2(Value x);
/// y = log(1 + x), accurate for small x; -inf at -1, NaN below.
TENON_API Value log1p(Value x);
/// y = 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
TENON_API Value erf(Value x);
/// y = sin x, x in radians and of any magnitude; NaN for infinite x.
TENON_API Value sin(Value x);
/// y = cos x, x in radians and of any magnitude; NaN for infinite x.
TENON_API Value cos(Value x);
/// y = the angle in [-pi/2, pi/2] whose tangent is x.
TENON_API Value atan(Value x);
/// y = log(1 + e^x) without overflow.
TENON_API Value softplus(Value x);
/// y = x tanh(softplus(x)); 0, its limit, at minus infinity.
TENON_API Value mish(Value x);
/// y = x sigmoid(x); 0, its limit, at minus infinity.
TENON_API Value silu(Value x);

}  // namespace tenon::ops

// clang-format off
/// The functions above as X(op, function).
#define TENON_UNARY_FUNCTIONS(X) \
  X(Not, logical_not) X(IsNaN, is_nan) X(IsInf, is_inf) X(Neg, neg) X(Relu, relu) \
  X(Sigmoid, sigmoid) X(Tanh, tanh) X(Abs, abs) X(Sign, sign) X(Ceil, ceil) X(Floor, floor) \
  X(Round, round) X(Sqrt, sqrt) X(Rsqrt, rsqrt) X(Reciprocal, reciprocal) X(Exp, exp) \
  X(Expm1, expm1) X(Log, log) X(Log2, log2) X(Log1p, log1p) X(Erf, erf) X(Sin, sin) \
  X(Cos, cos) X(Atan, atan) X(Softplus, softplus) X(Mish, mish) X(Silu, silu)
#define TENON_BINARY_FUNCTIONS(X) \
  X(Add, add) X(Sub, sub) X(Mul, mul) X(Div, div) X(Pow, pow) X(Max, maximum) X(Min, minimum)
#define TENON_BINARY_BOOL_FUNCTIONS(X) \
  X(Equal, equal) X(Less, less) X(LessOrEqual, less_equal) X(Greater, greater) \
  X(GreaterOrEqual, greater_equal) X(And, logical_and) X(Or, logical_or) X(Xor, logical_xor)
// clang-format on
