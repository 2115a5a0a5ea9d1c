// SPDX-License-Identifier: Apache-2.0
// onnx/rules/elementwise.cpp - arithmetic and functions of elements, clipping, casts and bits.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/rules.h"
#include "onnx/rules/bits.h"
#include "onnx/rules/broadcast.h"
#include "onnx/rules/numbers.h"

namespace tenon::onnx {
namespace {

// Functions of one operand.

/// Erf takes integers as well; its result is truncated.
Value erf(Value x) {
  return computed_in(floating_dtype(x.dtype()), ops::erf, x);
}

Value tan(Value x) {
  return ops::div(ops::sin(x), ops::cos(x));
}

/// (e^x - e^-x) / 2 by t = e^(x/2) - 1, of which e^x - 1 = t (t + 2): nothing cancels near 0, and no square overflows before the result.
Value sinh(Value x) {
  const auto half_expm1 = [](Value half) {
    const Value t = ops::expm1(half);
    return ops::mul(ops::mul(t, 0.5), ops::add(t, 2));
  };
  const Value half = ops::mul(x, 0.5);
  return ops::sub(half_expm1(half), half_expm1(ops::neg(half)));
}

/// (h^2 + 1 / h^2) / 2 with h = e^(x/2), whose square does not overflow before the result.
Value cosh(Value x) {
  const Value h = ops::exp(ops::mul(x, 0.5));
  return ops::add(ops::mul(ops::mul(h, 0.5), h), ops::div(ops::div(0.5, h), h));
}

/// Within [-1, 1] twice the inverse hyperbolic tangent of w = x / (1 + sqrt(1 + x^2)); beyond, log(|x|) + log(1 + sqrt(1 + 1 / x^2)) with
/// the sign of x. Each form gets operands within its range also where the other one is chosen, so that gradients stay finite.
Value asinh(Value x) {
  const Value inner = ops::clip(x, -1, 1), outer = ops::maximum(ops::abs(x), 1);
  const auto root = [](Value v) { return ops::add(ops::sqrt(ops::add(ops::square(v), 1)), 1); };
  const Value w = ops::div(inner, root(inner));
  const Value within = ops::sub(ops::log1p(w), ops::log1p(ops::neg(w)));
  const Value beyond = ops::mul(ops::sign(x), ops::add(ops::log(outer), ops::log(root(ops::reciprocal(outer)))));
  return ops::where(ops::greater(ops::abs(x), constant_like(x, 1)), beyond, within);
}

/// log(x + sqrt(x^2 - 1)) by t = x - 1, which is exact near 1.
Value acosh(Value x) {
  const Value t = ops::sub(x, 1);
  return ops::log1p(ops::add(t, ops::mul(ops::sqrt(t), ops::sqrt(ops::add(t, 2)))));
}

Value atanh(Value x) {
  return ops::mul(ops::sub(ops::log1p(x), ops::log1p(ops::neg(x))), 0.5);
}

/// atan(x / sqrt((1 - x) (1 + x))); NaN beyond 1.
Value asin(Value x) {
  return ops::atan(ops::div(x, ops::sqrt(ops::mul(ops::sub(constant_like(x, 1), x), ops::add(x, 1)))));
}

/// 2 atan(sqrt((1 - x) / (1 + x))): pi / 2 - asin(x) would cancel near 1.
Value acos(Value x) {
  return ops::mul(ops::atan(ops::sqrt(ops::div(ops::sub(constant_like(x, 1), x), ops::add(x, 1)))), 2);
}

// Functions of several operands.

Value floored_remainder(Value a, Value b) {
  return remainder(a, b, false);
}
Value truncated_remainder(Value a, Value b) {
  return remainder(a, b, true);
}

/// fmod 0 takes floats only from opset 28 on; they have the meaning of it in any opset.
void mod(Node& node) {
  return node.flag("fmod") ? binary<truncated_remainder>(node) : binary<floored_remainder>(node);
}

/// f of all operands, from left to right; nothing for a single operand, which is the result.
template <Value (*f)(Value, Value)>
std::optional<Value> folded(Node& node) {
  if (node.input_count() == 1) {
    node.output(0, node.operand(0));
    return std::nullopt;
  }
  const std::vector<Value> values = node.inputs();
  if (values.empty()) node.fail("expected at least one operand, got none");
  Value result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i].dtype() != result.dtype())
      node.fail(fmt::format("expected operands of one dtype, got {} and {}", name_of(result.dtype()), name_of(values[i].dtype())));
    result = f(result, values[i]);
  }
  return result;
}

template <Value (*f)(Value, Value)>
void variadic(Node& node) {
  if (const std::optional<Value> result = folded<f>(node)) node.output(0, *result);
}

void mean(Node& node) {
  const std::optional<Value> sum = folded<wrapping<ops::add>>(node);
  if (sum) node.output(0, divide(*sum, constant_like(*sum, static_cast<double>(node.input_count()))));
}

// Powers.

/// The dtype of a power: the wider one of the two, f32 for f16 with bf16.
DType wider(DType a, DType b) {
  if (!is_floating(b) || a == b) return a;
  if (size_of(a) == size_of(b)) return DType::f32;
  return size_of(a) > size_of(b) ? a : b;
}

/// base^exponent with 1 <= exponent, by squares. Integers wrap around.
Value repeated_product(Value base, std::int64_t exponent) {
  std::int64_t highest = 1;
  while (highest * 2 <= exponent) highest *= 2;
  Value product = base;
  for (std::int64_t bit = highest / 2; bit > 0; bit /= 2) {
    product = wrapping<ops::mul>(product, product);
    if ((exponent & bit) != 0) product = wrapping<ops::mul>(product, base);
  }
  return product;
}

/// Of an integer by an exponent that is computed, in f64: exact below 2^53; larger results are rounded and saturate, where other runtimes
/// give any result. A power that should be an integer may be off by a unit in the last place, which a cast must not truncate.
Value integer_power(Value base, Value exponent) {
  const Value y = ops::pow(cast_to(base, DType::f64), cast_to(exponent, DType::f64)), nearest = ops::round(y);
  const Value close = ops::less_equal(ops::abs(ops::sub(y, nearest)), ops::mul(ops::abs(y), 0x1p-48));
  return ops::cast(ops::where(close, nearest, y), base.dtype());
}

/// base^exponent for the constants that PyTorch computes otherwise than by pow; an absent value for others.
Value simple_power(Value base, double exponent) {
  if (exponent == 2) return ops::square(base);
  if (exponent == 3) return ops::cube(base);
  if (exponent == 0.5) return ops::sqrt(base);
  if (exponent == -0.5) return ops::rsqrt(base);
  if (exponent == -1) return ops::reciprocal(base);
  return {};
}

/// The result has the dtype of the base; the exponent may have another one from opset 12 on.
void power(Node& node, Value base, Value exponent) {
  const bool floating = is_floating(base.dtype());
  const Tensor known = node.known_if_constant(1);
  if (known.defined() && known.count() == 1 && known.shape().rank() <= base.shape().rank()) {
    const double n = known.item();
    const bool whole = n >= 1 && n <= 64 && n == std::floor(n);
    if (!floating && whole) return node.output(0, repeated_product(base, static_cast<std::int64_t>(n)));
    const Value simple = floating ? simple_power(base, n) : Value();
    if (simple.present()) return node.output(0, simple);
  }
  if (!floating) return node.output(0, integer_power(base, exponent));
  const DType dtype = wider(base.dtype(), exponent.dtype());
  node.output(0, cast_to(ops::pow(cast_to(base, dtype), cast_to(exponent, dtype)), base.dtype()));
}

void legacy_power(Node& node) {
  const OperandPair operands = legacy_operand_pair(node);
  power(node, operands.a, operands.b);
}

// Bounds.

/// Before opset 6 an absent bound is none; from then on it is that of f32.
template <bool bounded>
void clip_to_attributes(Node& node) {
  const double none = bounded ? static_cast<double>(std::numeric_limits<float>::max()) : std::numeric_limits<double>::infinity();
  node.output(0, ops::clip(node.input(0), node.number("min", -none), node.number("max", none)));
}

/// Bound i as a number that the attribute of Clip holds exactly for the dtype; nothing if it is computed or too large. NaN is no bound.
std::optional<double> constant_bound(Node& node, std::size_t i, DType dtype, double none) {
  if (!node.has_input(i)) return none;
  const Tensor known = node.known_if_constant(i);
  if (!known.defined() || arithmetic_dtype(dtype) != dtype) return std::nullopt;
  const double bound = known.item();
  if (std::isnan(bound)) return none;
  if (dtype == DType::i64 && std::abs(bound) >= 0x1p53) return std::nullopt;
  return bound;
}

/// min(max(x, low), high). Where Clip does not take the dtype or the bounds: as the function that ONNX defines it by.
void clip(Node& node) {
  Value x = node.input(0);
  for (const std::size_t i : {1U, 2U}) {
    if (node.has_input(i) && node.shape(i).count() != 1)
      node.fail(fmt::format("operand {}: expected a bound of one element, got {}", i, node.shape(i).str()));
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::optional<double> low = constant_bound(node, 1, x.dtype(), -infinity), high = constant_bound(node, 2, x.dtype(), infinity);
  if (low && high) {
    if (*low == -infinity && *high == infinity) return node.output(0, node.operand(0));
    return node.output(0, ops::clip(x, *low, *high));
  }
  const auto bound = [&](std::size_t i) { return cast_to(ops::reshape(node.input(i), Shape{}), x.dtype()); };
  if (node.has_input(1)) {
    const Value lowest = bound(1);
    x = ops::where(ops::less(x, lowest), lowest, x);
  }
  if (node.has_input(2)) {
    const Value highest = bound(2);
    x = ops::where(ops::less(highest, x), highest, x);
  }
  node.output(0, x);
}

// Casts. A float beyond the range of an integer dtype saturates and NaN becomes 0, where ONNX leaves the result open; integers that do not
// fit keep their low bits. `saturate` and `round_mode` are about 8-bit floats, which Tenon does not compute with.

void cast_operand(Node& node, DType to) {
  if (node.dtype(0) == to) return node.output(0, node.operand(0));
  node.output(0, ops::cast(node.input(0), to));
}

/// Before opset 6 `to` is the name of a TensorProto.DataType.
void cast_to_name(Node& node) {
  static constexpr std::pair<std::string_view, DType> dtypes[] = {{"FLOAT", DType::f32},  {"UINT8", DType::u8},     {"INT8", DType::i8},
                                                                  {"UINT16", DType::u16}, {"INT16", DType::i16},    {"INT32", DType::i32},
                                                                  {"INT64", DType::i64},  {"BOOL", DType::boolean}, {"FLOAT16", DType::f16},
                                                                  {"DOUBLE", DType::f64}, {"UINT32", DType::u32},   {"UINT64", DType::u64}};
  const std::string_view name = node.text("to");
  const auto found = std::find_if(std::begin(dtypes), std::end(dtypes), [&](const auto& entry) { return entry.first == name; });
  if (found == std::end(dtypes))
    node.unsupported(fmt::format("the element type '{}' of attribute 'to' is not one that Tenon computes with", name));
  cast_operand(node, found->second);
}

}  // namespace

const std::vector<Rule>& elementwise_rules() {
  static const std::vector<Rule> rules = {
      {"Add", 1, legacy_binary<wrapping<ops::add>>},
      {"Add", 7, binary<wrapping<ops::add>>},
      {"Sub", 1, legacy_binary<wrapping<ops::sub>>},
      {"Sub", 7, binary<wrapping<ops::sub>>},
      {"Mul", 1, legacy_binary<wrapping<ops::mul>>},
      {"Mul", 7, binary<wrapping<ops::mul>>},
      {"Div", 1, legacy_binary<divide>},
      {"Div", 7, binary<divide>},
      {"Mod", 10, mod},
      {"Pow", 1, legacy_power},
      {"Pow", 7, [](Node& node) { power(node, node.input(0), node.input(1)); }},
      {"Max", 1, variadic<maximum>},
      {"Min", 1, variadic<minimum>},
      {"Sum", 1, variadic<wrapping<ops::add>>},
      {"Mean", 1, mean},

      {"Neg", 1, unary<wrapping_unary<ops::neg>>},
      {"Abs", 1, unary<absolute>},
      {"Sign", 9, unary<sign_of>},
      {"Ceil", 1, unary<ops::ceil>},
      {"Floor", 1, unary<ops::floor>},
      {"Round", 11, unary<ops::round>},
      {"Sqrt", 1, unary<ops::sqrt>},
      {"Reciprocal", 1, unary<ops::reciprocal>},
      {"Exp", 1, unary<ops::exp>},
      {"Log", 1, unary<ops::log>},
      {"Erf", 9, unary<erf>},
      {"Sin", 7, unary<ops::sin>},
      {"Cos", 7, unary<ops::cos>},
      {"Tan", 7, unary<composite<tan>>},
      {"Asin", 7, unary<composite<asin>>},
      {"Acos", 7, unary<composite<acos>>},
      {"Atan", 7, unary<ops::atan>},
      {"Sinh", 9, unary<composite<sinh>>},
      {"Cosh", 9, unary<composite<cosh>>},
      {"Asinh", 9, unary<composite<asinh>>},
      {"Acosh", 9, unary<composite<acosh>>},
      {"Atanh", 9, unary<composite<atanh>>},

      {"Clip", 1, clip_to_attributes<false>},
      {"Clip", 6, clip_to_attributes<true>},
      {"Clip", 11, clip},
      {"Cast", 1, cast_to_name},
      {"Cast", 6,
       [](Node& node) {
         node.integer("to");  // required
         cast_operand(node, node.element_type("to", DType::none));
       }},
      {"CastLike", 15, [](Node& node) { cast_operand(node, node.dtype(1)); }},

      {"BitShift", 11, bit_shift},
      {"BitwiseAnd", 18, bitwise_and},
      {"BitwiseOr", 18, bitwise_or},
      {"BitwiseXor", 18, bitwise_xor},
      {"BitwiseNot", 18, bitwise_not},
      {"BitCast", 26, bit_cast},
  };
  return rules;
}

}  // namespace tenon::onnx
