// SPDX-License-Identifier: Apache-2.0
// ConvInteger: exact.
#include "convolution.h"

namespace tenon::conformance {
namespace {

constexpr tenon_dtype i8 = TENON_DTYPE_I8;
constexpr Values bytes{.low = -128, .high = 128, .whole = true, .special = Special::all};
constexpr Tolerance exact{"A sum of integers is exact modulo 2^32."};

Variant convolved(const Convolution& shape, tenon_dtype dtype = u8, bool zeros = true, bool per_filter = false) {
  const Values values{.low = dtype == i8 ? -128.0 : 0.0, .high = dtype == i8 ? 128.0 : 256.0, .whole = true};
  std::vector<OperandSpec> inputs{operand(shape.x(), bytes), operand(shape.w(), values, dtype)};
  inputs.push_back(zeros ? operand({}, bytes) : absent);
  inputs.push_back(zeros ? operand(per_filter ? Dims{shape.filters} : Dims{}, values, dtype) : absent);
  return {fmt::format("w={}{}{}{}", dtype == i8 ? "i8" : "u8", zeros ? "" : "/symmetric", per_filter ? "/per_filter," : ",", shape.label()),
          inputs,
          {result(shape.y(), i32)},
          shape.attributes()};
}

Array random_bytes(tenon_dtype dtype, const Dims& shape, Random& random) {
  Array array(dtype, shape);
  for (std::int64_t i = 0; i < array.count(); ++i) array.put<std::uint8_t>(i, static_cast<std::uint8_t>(random.bits()));
  return array;
}

Convolution any_shape(Random& random) {
  const auto dims = static_cast<std::size_t>(random.integer(1, 3));
  Convolution shape{random.integer(1, 3), 0, 0, {}, {}};
  shape.groups = random.integer(0, 3) == 0 ? random.integer(2, 4) : 1;
  const bool depthwise = shape.groups > 1 && random.integer(0, 2) == 0;
  shape.channels = shape.groups * (depthwise ? 1 : random.integer(1, 9));
  shape.filters = shape.groups * (depthwise ? 1 : random.integer(1, 20));
  add_random_dimensions(shape, dims, 5, 9, random);
  return shape;
}

/// Random shapes with operands of all values, filters as inputs and as parameters, which may be packed ahead.
void check_random_shapes(CaseContext& context, tenon_dtype dtype) {
  const int count = small_sizes() ? 40 : 200;
  for (int index = 0; index < count; ++index) {
    Random random(seed_for(context.seed, fmt::format("conv_integer {} {}", index, dtype)));
    const Convolution shape = any_shape(random);
    const Variant variant = convolved(shape, random.integer(0, 2) == 0 ? i8 : u8, random.integer(0, 4) != 0, random.integer(0, 2) == 0);
    std::vector<Array> inputs;
    for (const OperandSpec& spec : variant.inputs) {
      inputs.push_back(spec.present ? random_bytes(resolved(spec.dtype, dtype), spec.shape, random) : Array());
    }
    const Net net = net_of(line_of(TENON_OP_ConvInteger), variant, dtype, inputs);
    const Array got = context.run(net)[0];
    Net packed;
    std::vector<std::uint32_t> operands;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      operands.push_back(!variant.inputs[i].present ? TENON_NO_INDEX
                                                    : packed.input(inputs[i], {}, i == 1 ? TENON_VALUE_PARAMETER : TENON_VALUE_INPUT));
    }
    packed.node(TENON_OP_ConvInteger, line_of(TENON_OP_ConvInteger).version, variant.attributes.data(), operands,
                {packed.output(i32, shape.y())});
    const auto expect = [&](const Array& expected, const Array& result, const char* what) {
      const std::string wrong = compare(expected, result, {});
      if (!wrong.empty()) {
        throw Failure(fmt::format("x {}, w {}, {}, {}: {}", inputs[0].str(), inputs[1].str(), variant.label, what, wrong));
      }
    };
    expect(got, context.run(packed)[0], "w a parameter");
    if (context.oracle != nullptr) expect(context.judge(net)[0], got, "w an input");
  }
}

}  // namespace

std::vector<OpCase> cases_conv_integer() {
  const std::int64_t n = sized(30, 15);
  const Convolution example{1, 1, 1, {3, 3}, {2, 2}}, padded{1, 1, 1, {3, 3}, {2, 2}, {}, {}, {1, 1}, {1, 1}};
  const std::vector<double> example_x{2, 3, 4, 5, 6, 7, 8, 9, 10}, example_w{1, 1, 1, 1};
  // Golden vectors: the examples of ONNX's specification.
  return {{
      .op = TENON_OP_ConvInteger,
      .variants = {convolved({2, 5, 7, {6, 5}, {1, 1}}), convolved({1, 64, 64, {7, 7}, {1, 1}}, i8),
                   convolved({1, 16, 17, {7, 8}, {1, 1}, {2, 2}}, u8, true, true),
                   convolved({1, 17, 3, {5, 5}, {1, 1}, {}, {}, {1, 1}, {1, 1}}, i8),
                   convolved({1, 3, 17, {6, 6}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, i8, false),
                   convolved({2, 16, 16, {7, 7}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, u8, true, true),
                   convolved({1, sized(33, 17), 40, {n, n + 1}, {3, 3}, {}, {}, {1, 1}, {1, 1}}),
                   convolved({1, 16, 17, {13, 14}, {3, 3}, {2, 2}, {}, {1, 1}, {1, 1}}, i8, true, true),
                   convolved({1, 3, 16, {21, 20}, {7, 7}, {2, 2}, {}, {3, 3}, {3, 3}}),
                   convolved({2, 4, 6, {5, 6}, {3, 2}, {2, 1}, {}, {0, 1}, {1, 0}}, i8),
                   convolved({1, 5, 6, {9, 9}, {3, 3}, {}, {2, 2}, {2, 2}, {2, 2}}),
                   convolved({2, 6, 9, {6, 5}, {3, 3}, {}, {}, {1, 1}, {1, 1}, 3}, u8, true, true),
                   convolved({2, 16, 16, {9, 10}, {3, 3}, {}, {}, {1, 1}, {1, 1}, 16}, i8),
                   convolved({1, 17, 17, {9, 8}, {3, 3}, {2, 2}, {}, {1, 1}, {1, 1}, 17}, u8, true, true),
                   convolved({2, 3, 5, {11}, {3}, {}, {}, {1}, {1}}), convolved({1, 16, 17, {20}, {5}, {2}, {}, {2}, {2}}, i8, false),
                   // wide lines of whole cache lines
                   convolved({2, 64, 33, {5, 25}, {3, 3}, {}, {}, {1, 1}, {1, 1}}, i8),
                   // and of pixels with few channels
                   convolved({2, 3, 33, {9, 51}, {7, 7}, {2, 2}, {}, {3, 3}, {3, 3}}, i8, true, true),
                   convolved({1, 4, 17, {7, 30}, {3, 2}, {}, {2, 1}, {1, 0}, {1, 1}}),
                   convolved({1, 128, 10, {5, 53}, {3, 2}, {2, 2}, {1, 2}, {1, 0}, {0, 1}, 2}, u8, true, true),
                   convolved({0, 3, 4, {5, 5}, {3, 3}, {}, {}, {1, 1}, {1, 1}}),
                   convolved({0, 64, 4, {9, 60}, {3, 3}, {4, 2}, {}, {1, 1}, {1, 1}})},
      .bound = exact,
      .golden =
          {{"example", convolved(example), {example_x, example_w, {1}, {0}}, {{12, 16, 24, 28}}},
           {"padded", convolved(padded), {example_x, example_w, {1}, {0}}, {{1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9}}}},
      .extras = {{"random_shapes", check_random_shapes}},
  }};
}

}  // namespace tenon::conformance
