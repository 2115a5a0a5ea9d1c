// SPDX-License-Identifier: Apache-2.0
// onnx/rules/bits.cpp - And, Or, Xor, Not and shifts of the bits of integers. Tenon has no such ops; products and truncating quotients of
// powers of two are exact.
#include "onnx/rules/bits.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "onnx/rules/broadcast.h"
#include "onnx/rules/numbers.h"

namespace tenon::onnx {
namespace {

void expect_integers(Node& node, Value x) {
  if (is_floating(x.dtype()) || x.dtype() == DType::boolean) node.fail(fmt::format("expected integers, got {}", name_of(x.dtype())));
}

OperandPair integer_pair(Node& node) {
  const OperandPair operands = operand_pair(node);
  expect_integers(node, operands.a);
  return operands;
}

int bits_of(DType dtype) {
  return static_cast<int>(8 * size_of(dtype));
}

/// The bits of an integer as non-negative integers: all of them or, of 64-bit dtypes, the low and the high 32.
struct Words {
  Value low, high;
};

Words words_of(Value x) {
  switch (bits_of(x.dtype())) {
    case 8:
      return {ops::cast(cast_to(x, DType::u8), DType::i32), {}};
    case 16:
      return {ops::cast(cast_to(x, DType::u16), DType::i32), {}};
    case 32:
      return {ops::cast(cast_to(x, DType::u32), DType::i64), {}};
    default:
      break;
  }
  const auto low_word = [](Value v) { return ops::cast(ops::cast(v, DType::u32), DType::i64); };
  const Value all = cast_to(x, DType::i64), low = low_word(all);
  return {low, low_word(ops::div(ops::sub(all, low), 0x1p32))};
}

Value joined(const Words& words, DType dtype) {
  return cast_to(words.high.present() ? ops::add(ops::mul(words.high, 0x1p32), words.low) : words.low, dtype);
}

/// a and b of two words of `bits` bits, by a table of the results for four bits of each.
Value and_of(Value a, Value b, int bits) {
  std::vector<std::int64_t> table(256);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int64_t>((i / 16) & (i % 16));
  const Value results = a.graph().constant(Tensor::of(table, {256}).to(a.dtype()));
  Value sum;
  for (int bit = 0; bit < bits; bit += 4) {
    const Value rest_a = ops::div(a, 16), rest_b = ops::div(b, 16);
    const Value digit_a = ops::sub(a, ops::mul(rest_a, 16)), digit_b = ops::sub(b, ops::mul(rest_b, 16));
    const Value digit = ops::mul(ops::gather(results, ops::add(ops::mul(digit_a, 16), digit_b)), std::ldexp(1.0, bit));
    sum = bit == 0 ? digit : ops::add(sum, digit);
    a = rest_a;
    b = rest_b;
  }
  return sum;
}

/// A word of `bits` bits and a constant: each run of ones of the constant keeps bits [begin, end), which are
/// word / 2^begin mod 2^(end - begin).
Value and_of(Value word, std::uint64_t mask, int bits) {
  const auto is_set = [mask](int bit) { return (mask >> bit & 1) != 0; };
  Value sum;
  for (int begin = 0, end = 0; begin < bits; begin = end) {
    end = begin + 1;
    if (!is_set(begin)) continue;
    while (end < bits && is_set(end)) ++end;
    const double unit = std::ldexp(1.0, begin), modulus = std::ldexp(1.0, end - begin);
    Value run = begin == 0 ? word : ops::div(word, unit);
    if (end < bits) run = ops::sub(run, ops::mul(ops::div(run, modulus), modulus));
    if (begin != 0) run = ops::mul(run, unit);
    sum = sum.present() ? ops::add(sum, run) : run;
  }
  return sum.present() ? sum : ops::mul(word, 0);
}

/// a and b; one of them may be a constant of one element.
Value and_of(Node& node, const OperandPair& operands) {
  const DType dtype = operands.a.dtype();
  const int bits = std::min(bits_of(dtype), 32);
  for (const std::size_t i : {0U, 1U}) {
    const Value x = i == 0 ? operands.b : operands.a;
    const Tensor mask = node.known_if_constant(i);
    if (!mask.defined() || mask.count() != 1 || mask.shape().rank() > x.shape().rank()) continue;
    const auto ones = static_cast<std::uint64_t>(mask.to(DType::i64).to_vector<std::int64_t>()[0]);
    Words words = words_of(x);
    words.low = and_of(words.low, ones, bits);
    if (words.high.present()) words.high = and_of(words.high, ones >> 32, bits);
    return joined(words, dtype);
  }
  Words a = words_of(operands.a);
  const Words b = words_of(operands.b);
  a.low = and_of(a.low, b.low, bits);
  if (a.high.present()) a.high = and_of(a.high, b.high, bits);
  return joined(a, dtype);
}

/// Powers of two by their exponents 0 ... highest, which wrap around.
Value powers_of_two(Graph& graph, int highest, DType dtype) {
  std::vector<std::int64_t> powers;
  for (int i = 0; i <= highest; ++i) powers.push_back(i < 64 ? static_cast<std::int64_t>(std::uint64_t{1} << i) : 0);
  return graph.constant(Tensor::of(powers, {highest + 1}).to(dtype));
}

/// `count` as an index: that of `beyond` for a negative count and one of at least `bits`.
Value clamped_count(Value count, int bits, int beyond) {
  const Value index = cast_to(count, DType::i64);
  const Value inside = ops::logical_and(ops::greater_equal(index, constant_like(index, 0)), ops::less(index, constant_like(index, bits)));
  return ops::where(inside, index, constant_like(index, beyond));
}

/// x 2^count; bits that leave the dtype are lost.
Value shifted_left(Value x, Value count) {
  const int bits = bits_of(x.dtype());
  const DType wide = arithmetic_dtype(x.dtype());
  // The product with 2^bits has no bits of the dtype left.
  const Value factor = ops::gather(powers_of_two(x.graph(), bits, wide), clamped_count(count, bits, bits));
  return cast_to(ops::mul(cast_to(x, wide), factor), x.dtype());
}

/// x / 2^count of an unsigned x, rounded down.
Value shifted_right_unsigned(Value x, Value count) {
  const int bits = bits_of(x.dtype());
  const DType wide = arithmetic_dtype(x.dtype());
  const Value index = clamped_count(count, bits, bits);
  if (x.dtype() != DType::u64)
    return cast_to(ops::div(cast_to(x, wide), ops::gather(powers_of_two(x.graph(), bits, wide), index)), x.dtype());
  // Shifted by one it is a positive i64, which is divided by 2^(count - 1); 2^63 is negative as an i64, and its quotient 0 as well.
  const Value all = ops::cast(x, DType::i64), none = constant_like(index, 0);
  const Value first = ops::equal(index, none);
  const Value divisor = ops::gather(powers_of_two(x.graph(), bits - 1, wide), ops::where(first, none, ops::sub(index, 1)));
  return ops::cast(ops::where(first, all, ops::div(half_of_unsigned(all), divisor)), x.dtype());
}

/// x / 2^count of a signed x, rounded down: of a negative one that of its complement -1 - x, complemented. A count that is too large leaves
/// copies of the sign, as bits - 1 does.
Value shifted_right_signed(Value x, Value count) {
  const int bits = bits_of(x.dtype());
  const DType wide = arithmetic_dtype(x.dtype());
  const Value divisor = ops::gather(powers_of_two(x.graph(), bits - 1, wide), clamped_count(count, bits, bits - 1));
  const Value all = cast_to(x, wide), ones = constant_like(all, -1);
  const Value negative = ops::less(all, constant_like(all, 0));
  const Value quotient = ops::div(ops::where(negative, ops::sub(ones, all), all), divisor);
  return cast_to(ops::where(negative, ops::sub(ones, quotient), quotient), x.dtype());
}

}  // namespace

void bitwise_and(Node& node) {
  node.output(0, and_of(node, integer_pair(node)));
}

/// a + b counts the bits that both have twice.
void bitwise_or(Node& node) {
  const OperandPair operands = integer_pair(node);
  const Value both = and_of(node, operands);
  node.output(0, wrapping<ops::sub>(wrapping<ops::add>(operands.a, operands.b), both));
}

void bitwise_xor(Node& node) {
  const OperandPair operands = integer_pair(node);
  const Value both = and_of(node, operands);
  const Value twice = wrapping<ops::add>(both, both);
  node.output(0, wrapping<ops::sub>(wrapping<ops::add>(operands.a, operands.b), twice));
}

/// -1 - x
void bitwise_not(Node& node) {
  const Value x = node.input(0);
  expect_integers(node, x);
  const Value all = cast_to(x, arithmetic_dtype(x.dtype()));
  node.output(0, cast_to(ops::sub(constant_like(all, -1), all), x.dtype()));
}

void bit_shift(Node& node) {
  const OperandPair operands = integer_pair(node);
  const std::string_view direction = node.text("direction");
  if (direction == "LEFT") return node.output(0, shifted_left(operands.a, operands.b));
  if (direction != "RIGHT") node.fail(fmt::format("attribute 'direction': expected LEFT or RIGHT, got {}", direction));
  const auto shifted_right = is_unsigned(operands.a.dtype()) ? shifted_right_unsigned : shifted_right_signed;
  node.output(0, shifted_right(operands.a, operands.b));
}

}  // namespace tenon::onnx
