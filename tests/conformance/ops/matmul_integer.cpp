// SPDX-License-Identifier: Apache-2.0
// MatMulInteger: exact.
#include "op_family.h"

namespace tenon::conformance {
namespace {

constexpr tenon_dtype i8 = TENON_DTYPE_I8;
constexpr Values bytes{.low = -128, .high = 128, .whole = true, .special = Special::all};
constexpr Tolerance exact{"A sum of integers is exact modulo 2^32."};

Values values_of(tenon_dtype dtype) {
  return {.low = dtype == i8 ? -128.0 : 0.0, .high = dtype == i8 ? 128.0 : 256.0, .whole = true};
}

/// The shape of a zero point: none, a scalar, or one element for each line.
enum class Zero { none, scalar, lines };
OperandSpec zero_point(Zero zero, std::int64_t lines, Values values, tenon_dtype dtype = TENON_DTYPE_NONE) {
  if (zero == Zero::none) return absent;
  return operand(zero == Zero::scalar ? Dims{} : Dims{lines}, values, dtype);
}

Variant product(Dims a, Dims b, tenon_dtype dtype = u8, Zero zero_a = Zero::scalar, Zero zero_b = Zero::scalar) {
  const bool row = a.size() == 1, column = b.size() == 1;
  const Dims given_a = a, given_b = b;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  Dims y = broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!row) y.push_back(a[a.size() - 2]);
  if (!column) y.push_back(b.back());
  constexpr const char* names[] = {"none", "scalar", "lines"};
  return {fmt::format("b={}/zeros={},{}", dtype == i8 ? "i8" : "u8", names[static_cast<int>(zero_a)], names[static_cast<int>(zero_b)]),
          {operand(given_a, bytes), operand(given_b, values_of(dtype), dtype), zero_point(zero_a, a[a.size() - 2], bytes),
           zero_point(zero_b, b.back(), values_of(dtype), dtype)},
          {result(y, i32)}};
}

Array random_bytes(tenon_dtype dtype, const Dims& shape, Random& random) {
  Array array(dtype, shape);
  for (std::int64_t i = 0; i < array.count(); ++i) array.put<std::uint8_t>(i, static_cast<std::uint8_t>(random.bits()));
  return array;
}

/// Operands of all values, as inputs and as constants, which may be packed ahead.
void check_all_values(CaseContext& context, tenon_dtype dtype) {
  const int count = small_sizes() ? 20 : 60;
  for (int index = 0; index < count; ++index) {
    Random random(seed_for(context.seed, fmt::format("matmul_integer {} {}", index, dtype)));
    const std::int64_t m = random.integer(1, 40), k = random.integer(1, 150), n = random.integer(1, 100);
    const tenon_dtype other = random.integer(0, 2) == 0 ? i8 : u8;
    const auto zero = [&] { return static_cast<Zero>(random.integer(0, 3)); };
    const Zero zero_a = zero(), zero_b = zero();
    const Variant variant = product({m, k}, {k, n}, other, zero_a, zero_b);
    std::vector<Array> inputs;
    for (const OperandSpec& spec : variant.inputs) {
      inputs.push_back(spec.present ? random_bytes(resolved(spec.dtype, dtype), spec.shape, random) : Array());
    }
    const Net net = net_of(line_of(TENON_OP_MatMulInteger), variant, dtype, inputs);
    const Array got = context.run(net)[0];
    Net packed;
    std::vector<std::uint32_t> operands;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      operands.push_back(!variant.inputs[i].present ? TENON_NO_INDEX
                                                    : packed.input(inputs[i], {}, i == 1 ? TENON_VALUE_PARAMETER : TENON_VALUE_INPUT));
    }
    const tenon_attributes_none none{sizeof none, 0};
    packed.node(TENON_OP_MatMulInteger, line_of(TENON_OP_MatMulInteger).version, &none, operands, {packed.output(i32, {m, n})});
    const auto expect = [&](const Array& expected, const Array& result, const char* what) {
      const std::string wrong = compare(expected, result, {});
      if (!wrong.empty()) throw Failure(fmt::format("a {}, b {}, {}: {}", inputs[0].str(), inputs[1].str(), what, wrong));
    };
    expect(got, context.run(packed)[0], "b a parameter");
    if (context.oracle != nullptr) expect(context.judge(net)[0], got, "b an input");
  }
}

/// The nodes after a product of floats that was made one of integers.
struct Epilogue {
  bool scales, bias, residual;  ///< scales: one for each column, else one for all
  tenon_op activation;          ///< TENON_OP_NONE: none
  tenon_dtype quantised;        ///< TENON_DTYPE_NONE: the result is f32
  bool zero_point;
};

Net net_of_epilogue(const Variant& variant, const std::vector<Array>& inputs, const Epilogue& epilogue, Random& random) {
  const Dims& y = variant.outputs[0].shape;
  const auto floats = [&](const Dims& shape, double low, double high) {
    Array array(f32, shape);
    for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, random.uniform(low, high));
    return array;
  };
  const tenon_attributes_none none{sizeof none, 0};
  Net net;
  std::vector<std::uint32_t> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    operands.push_back(!variant.inputs[i].present ? TENON_NO_INDEX
                                                  : net.input(inputs[i], {}, i == 1 ? TENON_VALUE_PARAMETER : TENON_VALUE_INPUT));
  }
  std::uint32_t value = net.internal(i32, y);
  net.node(TENON_OP_MatMulInteger, line_of(TENON_OP_MatMulInteger).version, &none, operands, {value});
  const bool quantises = epilogue.quantised != TENON_DTYPE_NONE;
  const auto apply = [&](tenon_op op, const void* attributes, std::vector<std::uint32_t> others, bool last) {
    others.insert(others.begin(), value);
    value = last ? net.output(f32, y) : net.internal(f32, y);
    net.node(op, line_of(op).version, attributes, others, {value});
  };
  const bool activates = epilogue.activation != TENON_OP_NONE;
  apply(TENON_OP_DequantizeLinear, &none, {net.input(floats(epilogue.scales ? Dims{y.back()} : Dims{}, 1e-5, 1e-4))},
        !epilogue.bias && !epilogue.residual && !activates && !quantises);
  if (epilogue.bias) apply(TENON_OP_Add, &none, {net.input(floats({y.back()}, -1, 1))}, !epilogue.residual && !activates && !quantises);
  if (epilogue.residual) apply(TENON_OP_Add, &none, {net.input(floats(y, -1, 1))}, !activates && !quantises);
  const tenon_attributes_gelu gelu{};
  if (activates) {
    const AttributeBytes attributes = epilogue.activation == TENON_OP_Gelu ? AttributeBytes(gelu) : AttributeBytes();
    apply(epilogue.activation, attributes.data(), {}, !quantises);
  }
  if (!quantises) return net;
  Array zero(epilogue.quantised, {});
  zero.set(0, epilogue.quantised == i8 ? -3 : 131);
  tenon_attributes_cast cast{.struct_size = sizeof cast, .to = epilogue.quantised};
  std::vector<std::uint32_t> by{value, net.input(floats({}, 0.005, 0.02))};
  if (epilogue.zero_point) by.push_back(net.input(zero));
  net.node(TENON_OP_QuantizeLinear, line_of(TENON_OP_QuantizeLinear).version, &cast, by, {net.output(epilogue.quantised, y)});
  return net;
}

/// Dequantisation, bias, residual, activation and quantisation round each step to f32, so that they give the same bits in one kernel.
void check_fused(CaseContext& context, tenon_dtype dtype) {
  const auto none = TENON_DTYPE_NONE;
  const Epilogue epilogues[] = {{false, false, false, TENON_OP_NONE, none, false}, {true, true, false, TENON_OP_NONE, none, false},
                                {true, true, true, TENON_OP_NONE, none, false},    {false, true, false, TENON_OP_Gelu, u8, true},
                                {true, false, true, TENON_OP_Relu, i8, true},      {true, true, true, TENON_OP_Sigmoid, u8, false},
                                {false, false, false, TENON_OP_NONE, i8, false},   {true, true, false, TENON_OP_Silu, i8, true}};
  const Variant variants[] = {product({7, 12}, {12, 40}, i8),
                              product({sized(150, 45), 70}, {70, 33}, u8, Zero::scalar, Zero::lines),
                              product({2, 3, 9}, {9, 64}, i8, Zero::lines, Zero::none),
                              product({3, 5, 8}, {3, 8, 17}, i8),
                              product({9}, {9, 50}, u8),
                              product({2, 37, 6}, {6}, i8),
                              product({sized(140, 40), sized(260, 65)}, {sized(260, 65), sized(100, 35)}, i8, Zero::scalar, Zero::none)};
  Random random(seed_for(context.seed, fmt::format("fused {}", dtype)));
  for (const Variant& variant : variants) {
    std::vector<Array> inputs;
    for (const OperandSpec& spec : variant.inputs) {
      inputs.push_back(spec.present ? random_bytes(resolved(spec.dtype, dtype), spec.shape, random) : Array());
    }
    for (const Epilogue& epilogue : epilogues) {
      const Net net = net_of_epilogue(variant, inputs, epilogue, random);
      const auto apart = context.run(net, {.fusion = TENON_FUSION_OFF});
      const auto together = context.run(net, {.fusion = TENON_FUSION_FULL});
      // A sigmoid may be computed in another way than the op's, and a quantised result is off by one step then.
      const bool is_exact = epilogue.activation == TENON_OP_NONE || epilogue.activation == TENON_OP_Relu;
      const Bound bound = is_exact ? Bound{} : epilogue.quantised == none ? Bound{8 * epsilon(f32), 8 * epsilon(f32)} : Bound{0, 1};
      const std::string wrong = compare(apart[0], together[0], bound);
      if (!wrong.empty()) {
        throw Failure(fmt::format("a {}, b {}, {}{}{}{}{}: {}, expected the result of separate kernels", inputs[0].str(), inputs[1].str(),
                                  epilogue.scales ? "scales" : "scale", epilogue.bias ? " + bias" : "",
                                  epilogue.residual ? " + residual" : "",
                                  epilogue.activation == TENON_OP_NONE ? "" : std::string(" + ") + line_of(epilogue.activation).stem,
                                  epilogue.quantised == none ? "" : " + quantize", wrong));
      }
    }
  }
}

}  // namespace

std::vector<OpCase> cases_matmul_integer() {
  const std::int64_t n = sized(257, 33);
  const Zero none = Zero::none, lines = Zero::lines;
  // Golden vectors: the example of ONNX's specification, and the extremes.
  return {{
      .op = TENON_OP_MatMulInteger,
      .variants = {product({1, 1}, {1, 1}), product({3, 5}, {5, 4}, i8), product({1, 7}, {7, 1}), product({7, 1}, {1, 7}, i8),
                   product({5}, {5}), product({5}, {5, 3}, u8, lines, lines), product({3, 5}, {5}, i8, lines, lines),
                   product({2, 3, 4}, {4, 5}, u8, lines, lines), product({3, 4}, {2, 4, 5}, i8, lines), product({2, 1, 3, 4}, {3, 4, 2}),
                   product({0, 3}, {3, 2}), product({2, 3}, {3, 0}), product({2, 0}, {0, 3}), product({17, 64}, {64, 33}, i8, none, none),
                   product({17, 65}, {65, 33}, u8, none, lines), product({5, 130}, {130, 16}, u8, lines, none),
                   product({n, n - 1}, {n - 1, n}, u8), product({n, n - 2}, {n - 2, n + 7}, i8),
                   product({3, sized(2001, 201)}, {sized(2001, 201), 50})},
      .bound = exact,
      .golden = {{"example",
                  product({4, 3}, {3, 2}),
                  {{11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0}, {1, 4, 2, 5, 3, 6}, {12}, {0}},
                  {{-38, -83, -44, -98, -50, -113, -56, -128}},
                  {u8}},
                 {"lowest", product({1, 2}, {2, 1}, i8), {{-128, -128}, {-128, -128}, {127}, {127}}, {{130050}}, {i8}},
                 {"highest", product({1, 2}, {2, 1}, u8), {{255, 255}, {255, 255}, {0}, {0}}, {{130050}}, {u8}},
                 {"no_terms", product({2, 0}, {0, 2}), {{}, {}, {3}, {4}}, {{0, 0, 0, 0}}}},
      .extras = {{"all_values", check_all_values}, {"fused", check_fused}},
  }};
}

}  // namespace tenon::conformance
