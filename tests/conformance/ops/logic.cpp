// And, Or, Xor, Not, IsNaN, IsInf: exact.
#include "elementwise.h"

namespace tenon::conformance {
namespace {

OpCase truth_table(tenon_op op, std::vector<double> y) {
  const Variant variant{"", {operand({4}), operand({4})}, {result({4})}};
  return {.op = op, .variants = of_pairs({}, {}), .golden = {{"truth_table", variant, {{0, 0, 1, 1}, {0, 1, 0, 1}}, {std::move(y)}}}};
}

OpCase kind_of_number(tenon_op op, std::vector<double> y) {
  std::vector<Variant> variants;
  for (const Dims& shape : elementwise_shapes()) variants.push_back(of_shape(shape, {.special = Special::all}, {}, "", boolean));
  const std::vector<double> x{nan, inf, -inf, 0, -0.0, 1, -65280, 0x1p-14, -nan};
  const auto n = static_cast<std::int64_t>(x.size());
  return {.op = op, .variants = variants, .golden = {{"ieee", of_shape({n}, {}, {}, "", boolean), {x}, {std::move(y)}}}};
}

}  // namespace

std::vector<OpCase> cases_logic() {
  return {
      truth_table(TENON_OP_And, {0, 0, 0, 1}),
      truth_table(TENON_OP_Or, {0, 1, 1, 1}),
      truth_table(TENON_OP_Xor, {0, 1, 1, 0}),
      {.op = TENON_OP_Not, .variants = of_every_shape({}), .golden = {values_at("truth_table", {0, 1}, {1, 0})}},
      kind_of_number(TENON_OP_IsNaN, {1, 0, 0, 0, 0, 0, 0, 0, 1}),
      kind_of_number(TENON_OP_IsInf, {0, 1, 1, 0, 0, 0, 0, 0, 0}),
  };
}

}  // namespace tenon::conformance
