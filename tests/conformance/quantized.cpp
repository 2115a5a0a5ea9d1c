// SPDX-License-Identifier: Apache-2.0
#include "quantized.h"

namespace tenon::conformance {

void check_packed_weights(CaseContext& context, tenon_op op, std::uint32_t weights, const Variant& variant, tenon_dtype dtype,
                          std::uint64_t seed, const Bound& bound) {
  const OpLine& line = line_of(op);
  const std::vector<Array> inputs = fill(variant, dtype, seed);
  const Net net = net_of(line, variant, dtype, inputs);
  Net packed;
  std::vector<std::uint32_t> operands;
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    const std::uint32_t kind = i == weights ? TENON_VALUE_PARAMETER : TENON_VALUE_INPUT;
    operands.push_back(variant.inputs[i].present ? packed.input(inputs[i], {}, kind) : TENON_NO_INDEX);
  }
  const ResultSpec& y = variant.outputs[0];
  packed.node(op, line.version, variant.attributes.data(), operands, {packed.output(resolved(y.dtype, dtype), y.shape)});
  const auto expect = [&](const Array& expected, const Array& result, const char* what) {
    const std::string wrong = compare(expected, result, bound);
    if (!wrong.empty()) {
      throw Failure(fmt::format("a {}, b {}, {}, {}: {}", inputs[0].str(), inputs[weights].str(), variant.label, what, wrong));
    }
  };
  const Array got = context.run(net)[0];
  expect(got, context.run(packed)[0], "b a parameter");
  if (context.oracle != nullptr) expect(context.judge(net)[0], got, "b an input");
}

}  // namespace tenon::conformance
