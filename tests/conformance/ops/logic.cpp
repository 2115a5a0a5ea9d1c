// SPDX-License-Identifier: Apache-2.0
// And, Or, Xor, Not, IsNaN, IsInf: exact.
#include "elementwise.h"

namespace tenon::conformance {
namespace {

OpCase truth_table(tenon_op op, std::vector<double> y) {
  const Variant variant{"", {operand({4}), operand({4})}, {result({4})}};
  return {.op = op,
          .variants = of_pairs({}, {}),
          .bound = decided,
          .golden = {{"truth_table", variant, {{0, 0, 1, 1}, {0, 1, 0, 1}}, {std::move(y)}}}};
}

OpCase kind_of_number(tenon_op op, std::vector<double> y) {
  std::vector<Variant> variants;
  for (const Dims& shape : elementwise_shapes()) variants.push_back(of_shape(shape, {.special = Special::all}, {}, "", boolean));
  const std::vector<double> x{nan, inf, -inf, 0, -0.0, 1, -65280, 0x1p-14, -nan};
  const auto n = static_cast<std::int64_t>(x.size());
  return {.op = op, .variants = variants, .bound = decided, .golden = {{"ieee", of_shape({n}, {}, {}, "", boolean), {x}, {std::move(y)}}}};
}

/// Counts NaNs repeatedly, over enough elements for all threads: threads that race on a shared counter would lose some.
void nan_count_without_race(CaseContext& context, tenon_dtype dtype) {
  constexpr std::int64_t n = 200'003;
  Random random(seed_for(context.seed, "nan_count"));
  Array x(dtype, {n});
  std::int64_t expected = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t kind = random.integer(0, 8);
    x.set(i, kind == 0 ? nan : kind == 1 ? inf : static_cast<double>(kind));
    expected += kind == 0;
  }
  Net net;
  const std::uint32_t in = net.input(x), found = net.internal(TENON_DTYPE_BOOL, {n}), ones = net.internal(TENON_DTYPE_I64, {n});
  const std::uint32_t count = net.output(TENON_DTYPE_I64, {});
  tenon_attributes_cast to{.to = TENON_DTYPE_I64};
  tenon_attributes_axes all{.count = 1};
  net.node(TENON_OP_IsNaN, line_of(TENON_OP_IsNaN).version, AttributeBytes().data(), {in}, {found});
  net.node(TENON_OP_Cast, line_of(TENON_OP_Cast).version, AttributeBytes(to).data(), {found}, {ones});
  net.node(TENON_OP_ReduceSum, line_of(TENON_OP_ReduceSum).version, AttributeBytes(all).data(), {ones}, {count});
  for (int run = 0; run < 20; ++run) {
    const double got = context.run(net)[0].at(0);
    if (got != static_cast<double>(expected)) throw Failure(fmt::format("run {} counts {} NaNs, expected {}", run, got, expected));
  }
}

}  // namespace

std::vector<OpCase> cases_logic() {
  OpCase is_nan = kind_of_number(TENON_OP_IsNaN, {1, 0, 0, 0, 0, 0, 0, 0, 1});
  is_nan.extras = {{"nan_count_without_race", nan_count_without_race}};
  return {
      truth_table(TENON_OP_And, {0, 0, 0, 1}),
      truth_table(TENON_OP_Or, {0, 1, 1, 1}),
      truth_table(TENON_OP_Xor, {0, 1, 1, 0}),
      {.op = TENON_OP_Not, .variants = of_every_shape({}), .bound = decided, .golden = {values_at("truth_table", {0, 1}, {1, 0})}},
      std::move(is_nan),
      kind_of_number(TENON_OP_IsInf, {0, 1, 1, 0, 0, 0, 0, 0, 0}),
  };
}

}  // namespace tenon::conformance
