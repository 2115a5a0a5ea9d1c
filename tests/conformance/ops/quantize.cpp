// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: every rounding is specified, so that results are equal.
#include "op_family.h"

namespace tenon::conformance {
namespace {

constexpr tenon_dtype i8 = TENON_DTYPE_I8, i16 = TENON_DTYPE_I16, u16 = TENON_DTYPE_U16;
constexpr Values numbers{.low = -40, .high = 40}, scales{.low = 0.05, .high = 0.3};

constexpr Tolerance rounded{
    "The quotient is rounded to the dtype of x, or to f32 if it has 16 bits, then to an integer: each operation is rounded as IEEE 754 "
    "specifies."};
constexpr Tolerance scaled{"A difference of integers, exact, times the scale, is rounded once, or to f32 and then to 16 bits."};

/// The integers from which a zero point is drawn, of any of the dtypes.
constexpr Values zero_points{.low = -20, .high = 100, .whole = true};

Variant quantized(const Dims& x, const Dims& scale, tenon_dtype to, bool zero_point = true, Values values = numbers) {
  tenon_attributes_cast attributes{};
  attributes.to = to;
  std::vector<OperandSpec> inputs{operand(x, values), operand(scale, scales)};
  inputs.push_back(zero_point ? operand(scale, zero_points, to) : absent);
  return {fmt::format("to={}{}", static_cast<unsigned>(to), zero_point ? "" : "/symmetric"), inputs, {result(x, to)}, attributes};
}

Variant dequantized(const Dims& x, const Dims& scale, tenon_dtype from, bool zero_point = true) {
  const double high = from == i8 ? 128 : from == u8 ? 256 : 32768;
  std::vector<OperandSpec> inputs{operand(x, {.low = -high, .high = high, .whole = true}, from), operand(scale, scales)};
  if (from == i8) inputs[0].values.low = -128;
  inputs.push_back(zero_point ? operand(scale, zero_points, from) : absent);
  return {fmt::format("from={}{}", static_cast<unsigned>(from), zero_point ? "" : "/symmetric"), inputs, {result(x)}};
}

Variant dynamic(const Dims& x, Values values = numbers, const char* label = "") {
  return {label, {operand(x, values)}, {result(x, u8), result({}), result({}, u8)}};
}

Golden quantization(const char* name, tenon_dtype to, std::vector<double> x, double scale, double zero_point, std::vector<double> y,
                    std::vector<tenon_dtype> dtypes = {}) {
  const auto n = static_cast<std::int64_t>(x.size());
  return {name, quantized({n}, {}, to), {std::move(x), {scale}, {zero_point}}, {std::move(y)}, std::move(dtypes)};
}

}  // namespace

std::vector<OpCase> cases_quantize() {
  const std::int64_t n = sized(3001, 301);
  // Golden vectors: the examples of ONNX's specification, and ties and bounds.
  return {
      {.op = TENON_OP_QuantizeLinear,
       .variants = {quantized({7}, {}, u8), quantized({2, 3, 5}, {}, i8), quantized({2, 3, 5}, {3, 1}, u8), quantized({4, 6}, {6}, i8),
                    quantized({2, 3, 4, 4}, {3, 1, 1}, i16), quantized({2, 17}, {2, 1}, u16), quantized({2, 3}, {2, 3}, u8),
                    quantized({n}, {}, u8), quantized({n}, {}, i8, false), quantized({3, n}, {3, 1}, i8), quantized({n, 33}, {33}, u8),
                    quantized({5}, {}, i16, false), quantized({}, {}, u8), quantized({0, 3}, {}, i8), quantized({0, 3}, {3}, u8)},
       .bound = rounded,
       .oracle = Oracle::same_dtype,
       .golden = {quantization("example", u8, {0, 2, 3, 1000, -254, -1000}, 2, 128, {128, 129, 130, 255, 1, 0}, {f32, f64}),
                  quantization("ties", i8, {0.5, 1.5, 2.5, -0.5, -1.5, 3}, 1, 0, {0, 2, 2, 0, -2, 3}),
                  quantization("tie_before_zero_point", i8, {0.5, 1.5, 2.5, -1.5}, 1, 1, {1, 3, 3, -1}),
                  quantization("saturates", i8, {200, -200, 127, -128, inf, -inf, nan}, 1, 0, {127, -128, 127, -128, 127, -128, 0}),
                  quantization("saturates_u16", u16, {-1, 65000, inf, -inf}, 0.5, 10, {8, 65535, 65535, 0}, {f32, f64})}},
      {.op = TENON_OP_DequantizeLinear,
       .variants = {dequantized({7}, {}, u8), dequantized({2, 3, 5}, {}, i8), dequantized({2, 3, 5}, {3, 1}, u8),
                    dequantized({4, 6}, {6}, i8), dequantized({2, 3, 4, 4}, {3, 1, 1}, i16), dequantized({2, 17}, {2, 1}, u16),
                    dequantized({2, 3}, {2, 3}, u8), dequantized({n}, {}, u8), dequantized({n}, {}, i8, false),
                    dequantized({3, n}, {3, 1}, i8), dequantized({n, 33}, {33}, u8), dequantized({5}, {}, i32, false),
                    dequantized({}, {}, u8), dequantized({0, 3}, {}, i8)},
       .bound = scaled,
       .oracle = Oracle::same_dtype,
       .gradient = {1},
       .golden = {{"example", dequantized({4}, {}, u8), {{0, 3, 128, 255}, {2}, {128}}, {{-256, -250, 0, 254}}},
                  {"axis", dequantized({2, 2}, {2, 1}, i8), {{-128, 127, 1, 2}, {0.5, 4}, {-1, 1}}, {{-63.5, 64, 0, 4}}}}},
      {.op = TENON_OP_DynamicQuantizeLinear,
       .variants = {dynamic({7}), dynamic({2, 3, 5}), dynamic({1, 3, 8, 9}), dynamic({n}), dynamic({sized(300001, 3001)}),
                    dynamic({n}, {.low = 0.1, .high = 8}, "positive"), dynamic({33}, {.low = -8, .high = -0.1}, "negative"), dynamic({}),
                    dynamic({0, 3})},
       .bound = rounded,
       .oracle = Oracle::same_dtype,
       .golden = {{"range", dynamic({4}), {{0, 255, 102, 1}}, {{0, 255, 102, 1}, {1}, {0}}},
                  {"both_signs", dynamic({4}), {{-127, 128, 0.5, -0.5}}, {{0, 255, 127, 127}, {1}, {127}}},
                  {"zeros", dynamic({3}), {{0, 0, 0}}, {{0, 0, 0}, {1.0 / 255}, {0}}}}},
  };
}

}  // namespace tenon::conformance
