// SPDX-License-Identifier: Apache-2.0
// Add, Sub, Mul, Div, Pow, Max, Min: one rounding each but for Pow, with NumPy's broadcasting.
#include "elementwise.h"

namespace tenon::conformance {
namespace {

constexpr Tolerance one_rounding =
    Tolerance{
        "IEEE arithmetic rounds these once: half an epsilon. A second half allows a quotient made of a reciprocal and a "
        "correction.",
        1}
        .with_signed_zeros();
constexpr Tolerance exact{"The result is one of the operands."};

constexpr Values plain{.special = Special::all};
/// Away from zero, where the derivative of a quotient is steep.
constexpr Values denominator{.low = -3, .high = 3, .gap = 0.5, .special = Special::all};
/// Real powers have positive bases.
constexpr Values base{.low = 0.25, .high = 4, .special = Special::all};

Golden of_two(const std::string& name, std::vector<double> a, std::vector<double> b, std::vector<double> y,
              std::vector<tenon_dtype> dtypes = {f16, bf16, f32, f64}) {
  const auto n = static_cast<std::int64_t>(y.size());
  return {name, {"", {operand({n}), operand({n})}, {result({n})}}, {std::move(a), std::move(b)}, {std::move(y)}, std::move(dtypes)};
}

/// Eighths are exact in every floating type, so the results below are exact, too.
Golden eighths(std::vector<double> expected) {
  return {"eighths",
          {"", {operand({2, 3}), operand({3})}, {result({2, 3})}},
          {{1.5, -2.25, 0.125, 4, 0, -8}, {0.5, 2, -4}},
          {std::move(expected)},
          {f16, bf16, f32, f64}};
}
Golden ieee(std::vector<double> expected) {
  return of_two("ieee", {inf, inf, -inf, nan, 1, 0, 0, -1, inf}, {1, -inf, -inf, 1, 0, 0, -1, inf, 0}, std::move(expected));
}
Golden wraps_i32(std::vector<double> expected) {
  return of_two("wraps", {2147483647, -2147483648.0, 65536, -2147483648.0, 7, -7}, {1, 1, 65536, -1, -2, 2}, std::move(expected), {i32});
}
Golden wraps_i64(std::vector<double> expected) {
  return of_two("wraps", {-0x1p63, -0x1p63, 0x1p32, -0x1p63, 7, -7}, {-1, -0x1p63, 0x1p32, 1, -2, 2}, std::move(expected), {i64});
}

OpCase binary(tenon_op op, const Values& b, std::vector<Golden> golden) {
  return {.op = op, .variants = of_pairs(plain, b), .bound = one_rounding, .gradient = {0, 1}, .golden = std::move(golden)};
}
OpCase choice(tenon_op op, std::vector<Golden> golden) {
  return {.op = op, .variants = of_pairs(plain, plain), .bound = exact, .gradient = {0, 1}, .golden = std::move(golden)};
}

Golden first_test() {
  return of_two("first_test", {1, 2, 3}, {4, 5, 6}, {4, 10, 18}, {});
}

void put_zero(std::vector<Array>& inputs) {
  inputs[1].set(3, 0);
}

/// Differences that are subtracted later in the opposite order, so that all of them wait, of one to five operands: as one kernel or
/// several. The numbers are small integers.
void many_results_wait(CaseContext& context, tenon_dtype dtype) {
  const tenon_attributes_none none{sizeof none, 0};
  const std::uint32_t version = line_of(TENON_OP_Sub).version;
  for (const std::int64_t count : {1, 24, 1031, 4096}) {
    for (const std::size_t operands : {1u, 2u, 3u, 5u}) {
      for (const std::size_t waiting : {2u, 3u, 5u, 6u, 9u, 15u}) {
        Net net;
        std::vector<std::uint32_t> inputs, differences;
        for (std::size_t k = 0; k < operands; ++k) {
          Array numbers(dtype, {count});
          for (std::int64_t i = 0; i < count; ++i) numbers.set(i, static_cast<double>((i * 5 + static_cast<std::int64_t>(k) * 3) % 7 - 3));
          inputs.push_back(net.input(std::move(numbers)));
        }
        const auto subtract = [&](std::uint32_t a, std::uint32_t b, std::uint32_t y) {
          net.node(TENON_OP_Sub, version, &none, {a, b}, {y});
        };
        for (std::size_t k = 0; k < waiting; ++k) {
          differences.push_back(net.internal(dtype, {count}));
          subtract(k == 0 ? inputs[0] : differences[k - 1], inputs[k % operands], differences[k]);
        }
        std::uint32_t total = differences.back();
        for (std::size_t k = waiting - 1; k-- > 0;) {
          const std::uint32_t y = k == 0 ? net.output(dtype, {count}) : net.internal(dtype, {count});
          subtract(differences[k], total, y);
          total = y;
        }
        const auto apart = context.run(net, {.fusion = TENON_FUSION_OFF});
        const auto together = context.run(net, {.fusion = TENON_FUSION_FULL});
        const std::string wrong = compare(apart[0], together[0], {0, 0});
        if (!wrong.empty())
          throw Failure(fmt::format("{} differences of {} operands, {} elements: {}, expected the result of separate kernels", waiting,
                                    operands, count, wrong));
      }
    }
  }
}

}  // namespace

std::vector<OpCase> cases_binary() {
  OpCase div = binary(TENON_OP_Div, denominator,
                      {eighths({3, -1.125, -0.03125, 8, 0, 2}), ieee({inf, nan, nan, nan, inf, nan, -0.0, -0.0, inf}),
                       wraps_i32({2147483647, -2147483648.0, 1, -2147483648.0, -3, -3}), wraps_i64({-0x1p63, 1, 1, -0x1p63, -3, -3})});
  div.bad = {{"integer_by_zero", {"", {operand({8}), operand({8}, denominator)}, {result({8})}}, put_zero, {"div", "zero"}, {i32, i64}}};
  OpCase sub = binary(TENON_OP_Sub, plain,
                      {eighths({1, -4.25, 4.125, 3.5, -2, -4}), ieee({inf, inf, nan, nan, 1, 0, 1, -inf, inf}),
                       wraps_i32({2147483646, 2147483647, 0, -2147483647, 9, -9})});
  sub.extras = {{"many_results_wait", many_results_wait}};
  return {
      binary(TENON_OP_Add, plain,
             {eighths({2, -0.25, -3.875, 4.5, 2, -12}), ieee({inf, nan, -inf, nan, 1, 0, -1, inf, inf}),
              wraps_i32({-2147483648.0, -2147483647, 131072, 2147483647, 5, -5}),
              of_two("wraps", {-0x1p63, 0x1p62, 5}, {-0x1p63, 0x1p62, -7}, {0, -0x1p63, -2}, {i64})}),
      sub,
      binary(TENON_OP_Mul, plain,
             {first_test(), eighths({0.75, -4.5, -0.5, 2, 0, 32}), ieee({inf, -inf, inf, nan, 0, 0, -0.0, -inf, nan}),
              wraps_i32({2147483647, -2147483648.0, 0, -2147483648.0, -14, -14}), wraps_i64({-0x1p63, 0, 0, -0x1p63, -14, -14})}),
      div,
      {.op = TENON_OP_Pow,
       .variants = of_pairs(base, {.low = -3, .high = 3, .special = Special::all}),
       .bound = four_ulp,
       .gradient = {0, 1},
       .golden = {of_two("whole_powers", {2, -2, -2, 1.5, -0.5, 10, 4, 9}, {10, 3, 4, 2, -3, -2, 0.5, -0.5},
                         {1024, -8, 16, 2.25, -8, 0.01, 2, 0.3333333333333333}),
                  of_two("real_powers", {0.5, 3, 10.5, 1.0078125}, {0.375, -2.5, 1.125, 100},
                         {0.7711054127039704, 0.06415002990995842, 14.087630802242007, 2.1775797294483876}),
                  // C23, annex F.10.4.5
                  of_two("ieee", {0, -0.0, 0, -0.0, -1, 1, nan, 1, -2, 0.5, 0.5, 2, 2, -inf, -inf, inf, inf, -inf},
                         {-3, -3, 2, 3, inf, nan, 0, inf, 0.5, -inf, inf, -inf, inf, -3, 3, -1, 1, 2},
                         {inf, -inf, 0, -0.0, 1, 1, 1, 1, nan, inf, 0, 0, inf, -0.0, -inf, 0, inf, inf})}},
      choice(TENON_OP_Max, {eighths({1.5, 2, 0.125, 4, 2, -4}), ieee({inf, inf, -inf, nan, 1, 0, 0, inf, inf}),
                            of_two("nan_from_either_side", {nan, 1, nan}, {1, nan, nan}, {nan, nan, nan}),
                            of_two("integers", {2147483647, -2147483648.0, -1}, {-1, 0, -2}, {2147483647, 0, -1}, {i32, i64})}),
      choice(TENON_OP_Min, {eighths({0.5, -2.25, -4, 0.5, 0, -8}), ieee({1, -inf, -inf, nan, 0, 0, -1, -1, 0}),
                            of_two("nan_from_either_side", {nan, 1, nan}, {1, nan, nan}, {nan, nan, nan}),
                            of_two("integers", {2147483647, -2147483648.0, -1}, {-1, 0, -2}, {-1, -2147483648.0, -2}, {i32, i64})}),
  };
}

}  // namespace tenon::conformance
