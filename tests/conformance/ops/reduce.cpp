// SPDX-License-Identifier: Apache-2.0
// Reductions over any set of axes.
#include "op_family.h"

#include "huge_view.h"

#include <cstring>

namespace tenon::conformance {
namespace {

Variant over(const Dims& shape, const Dims& axes, bool keepdims, const Values& values = {.special = Special::not_large}) {
  tenon_attributes_axes attributes{.keepdims = keepdims, .count = static_cast<std::uint32_t>(axes.size())};
  std::copy(axes.begin(), axes.end(), attributes.axes);
  Dims reduced;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(shape.size()); ++d) {
    const bool listed = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (!listed) reduced.push_back(shape[static_cast<std::size_t>(d)]);
    if (listed && keepdims) reduced.push_back(1);
  }
  return {fmt::format("axes={}{}", str(axes), keepdims ? "/keepdims" : ""), {operand(shape, values)}, {result(reduced)}, attributes};
}

/// Long lines use other algorithms than short ones: blocks, threads, parts.
std::vector<Variant> variants(const Values& values = {.special = Special::not_large}) {
  return {over({1}, {0}, false, values),
          over({7}, {0}, true, values),
          over({8, 10}, {1}, false, values),
          over({8, 10}, {0}, false, values),
          over({8, 10}, {0, 1}, false, values),
          over({2, 3, 4}, {0, 2}, false, values),
          over({2, 3, 4}, {1}, true, values),
          over({3, 1, 5}, {1}, false, values),
          over({2, 3, 4, 5}, {1, 2}, true, values),
          over({3, sized(20011, 2003)}, {1}, false, values),
          over({sized(3001, 301), 7}, {0}, false, values),
          over({sized(70001, 1001)}, {0}, false, values)};
}

/// The same with empty lines, for reductions that have a value for them.
std::vector<Variant> variants_and_nothing(const Values& values = {.special = Special::not_large}) {
  std::vector<Variant> list = variants(values);
  for (Variant& variant : std::vector<Variant>{over({0}, {0}, false), over({3, 0}, {1}, false), over({0, 3}, {1}, false)}) {
    list.push_back(std::move(variant));
  }
  return list;
}

std::int64_t terms(const Variant& variant) {
  const std::int64_t results = count_of(variant.outputs[0].shape);
  return results == 0 ? 0 : count_of(variant.inputs[0].shape) / results;
}
constexpr Tolerance sum_bound{
    "|x| <= 2: n terms summed in any order are off by n epsilon / 2 times the sum of their magnitudes, which is 2 n "
    "at most. No sensible order is that bad: sums by blocks or lanes are off by their depth. sqrt(n) partial sums of "
    "sqrt(n) terms are still allowed.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      const auto n = static_cast<double>(terms(variant));
      return {2 * epsilon(t), epsilon(t) * std::sqrt(n) * 2 * n};
    }};
constexpr Tolerance mean_bound{
    "A sum of n terms of at most 2, off by about root(n) roundings of what may be 2 n, divided by n and rounded once "
    "more.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      const auto n = static_cast<double>(terms(variant));
      return {3 * epsilon(t), epsilon(t) * std::sqrt(n) * 2};
    }};
constexpr Tolerance positive_bound{
    "Terms without a sign do not cancel, so the error is relative: of the term, of a root, and of partial sums, of "
    "which sqrt(n) of sqrt(n) terms are allowed.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      return {epsilon(t) * (2 + std::sqrt(static_cast<double>(terms(variant)))), 0};
    }};
constexpr Tolerance product_bound{"Every product rounds by epsilon / 2.", [](const Variant& variant, tenon_dtype t) -> Bound {
                                    return {epsilon(t) * (1 + 0.5 * static_cast<double>(terms(variant))), 0};
                                  }};
constexpr Tolerance log_bound{
    "x - m is exact or rounds by epsilon / 2 of at most 4, which exp makes relative; so is the sum's error, which log "
    "makes absolute. Then m is added.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      return {2 * epsilon(t), epsilon(t) * (6 + std::sqrt(static_cast<double>(terms(variant))))};
    }};
constexpr Tolerance exact{"The result is one of the elements."};

/// The sum of n ones is exact in any order.
void check_many_ones(CaseContext& context, tenon_dtype dtype) {
  // Exact: every integer up to 2^digits is representable in the dtype.
  const std::int64_t n =
      is_float(dtype) ? std::min(static_cast<std::int64_t>(2 / epsilon(dtype)), sized(1000003, 100003)) : sized(1000003, 100003);
  const Variant variant = over({n}, {0}, false);
  const auto sum = context.run(
      net_of(line_of(TENON_OP_ReduceSum), variant, dtype, {Array(dtype, {n}, std::vector<double>(static_cast<std::size_t>(n), 1.0))}));
  if (sum[0].at(0) != static_cast<double>(n)) throw Failure(fmt::format("{} ones sum to {}", n, sum[0].str(0)));
}

/// Equal terms round in the same direction as long as their sum stays between two powers of two: added one after the other, they are off by
/// n / 12 epsilon of their sum, and by the depth of the tree when summed by blocks or lanes.
template <tenon_op op, const Tolerance& bound>
void equal_terms(CaseContext& context, tenon_dtype dtype) {
  if (!is_float(dtype)) throw NotRun("sums of integers are exact in any order");
  constexpr std::int64_t n = 1000003;
  const Variant variant = over({n}, {0}, false);
  Random random(seed_for(context.seed, fmt::format("equal terms {}", op)));
  for (int round = 0; round < 3; ++round) {
    Array x(dtype, {n});
    x.set(0, random.uniform(1, 2));
    for (std::int64_t i = 1; i < n; ++i)
      std::memcpy(x.bytes() + i * x.element_size(), x.bytes(), static_cast<std::size_t>(x.element_size()));
    const double term = x.at(0), count = static_cast<double>(n);
    const double sum = op == TENON_OP_ReduceSum || op == TENON_OP_ReduceL1 ? term * count
                       : op == TENON_OP_ReduceSumSquare                    ? term * term * count
                       : op == TENON_OP_ReduceL2                           ? term * std::sqrt(count)
                                                                           : term;
    const auto got = context.run(net_of(line_of(op), variant, dtype, {x}));
    const std::string wrong = compare(Array(f64, {}, {sum}), got[0], bound(variant, dtype));
    if (!wrong.empty()) throw Failure(fmt::format("{} times {}: {}", n, x.str(0), wrong));
  }
}
template <tenon_op op, const Tolerance& bound>
Extra with_equal_terms() {
  return {"equal_terms", equal_terms<op, bound>};
}

/// 64-bit integers beyond 2^53 are not doubles, and so not in golden vectors.
void check_beyond_doubles(CaseContext& context, tenon_dtype dtype) {
  if (dtype != i64) return;
  constexpr std::int64_t unit = std::int64_t{1} << 53, highest = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t rows[][3] = {{unit, 1, unit}, {-unit, -unit - 1, -unit}, {highest - 1, highest, highest - 2}, {unit + 1, 0, -1}};
  Array x(i64, {4, 3});
  for (std::int64_t i = 0; i < 12; ++i) x.put(i, rows[i / 3][i % 3]);
  const auto check = [&](tenon_op op, const auto& combine) {
    if ((context.device.capability(op, line_of(op).version) & TENON_DTYPE_BIT(TENON_DTYPE_I64)) == 0) return;
    const auto y = context.run(net_of(line_of(op), over({4, 3}, {1}, false), i64, {x}));
    for (std::int64_t row = 0; row < 4; ++row) {
      const std::int64_t expected = combine(combine(rows[row][0], rows[row][1]), rows[row][2]);
      if (y[0].get<std::int64_t>(row) == expected) continue;
      throw Failure(fmt::format("{} of {}, {}, {}: expected {}, got {}", line_of(op).name, rows[row][0], rows[row][1], rows[row][2],
                                expected, y[0].str(row)));
    }
  };
  check(TENON_OP_ReduceSum, [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  });
  check(TENON_OP_ReduceProd, [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  });
  check(TENON_OP_ReduceMax, [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  check(TENON_OP_ReduceMin, [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
}

/// More terms than 31 bits count: seconds of work.
void check_huge_view(CaseContext& context, tenon_dtype dtype) {
  if (effort() != Effort::deep || dtype != i64) throw NotRun("profile deep sums more than 2^31 terms, as i64");
  const Array row = counted_row(dtype, 1);
  const auto y = run_on_huge_view(context, line_of(TENON_OP_ReduceSum), over({1, 1}, {0, 1}, false), dtype, {row});
  const std::int64_t expected = huge_rows * row.get<std::int64_t>(0);
  if (y[0].get<std::int64_t>(0) != expected) throw Failure(fmt::format("the sum of {} ones is {}", huge_rows, y[0].str(0)));
}

/// The squares are out of the range of the dtype; the norm of (3, 4) 2^e is not, and its bits are known.
void check_range(CaseContext& context, tenon_dtype dtype) {
  const int highest = std::ilogb(largest(dtype)) - 3, lowest = std::ilogb(smallest_normal(dtype)) + 1;
  for (const int exponent : {highest, lowest}) {
    const double unit = std::ldexp(1.0, exponent);
    const auto y = context.run(
        net_of(line_of(TENON_OP_ReduceL2), over({2, 2}, {1}, false), dtype, {Array(dtype, {2, 2}, {3 * unit, -4 * unit, 0, 0})}));
    // Up to the rounding of a square root of a rounded sum.
    if (!(std::fabs(y[0].at(0) - 5 * unit) <= 5 * unit * 2 * epsilon(dtype)) || y[0].at(1) != 0) {
      throw Failure(fmt::format("the norms of (3, -4) * 2^{} and of (0, 0) are {} and {}", exponent, y[0].str(0), y[0].str(1)));
    }
  }
}

/// The maximum is added to the logarithm: exp(1000) would overflow.
void logsumexp_exact(CaseContext& context, tenon_dtype dtype) {
  const double m = dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16 ? 256 : 1000;
  const auto y = context.run(
      net_of(line_of(TENON_OP_ReduceLogSumExp), over({4, 2}, {1}, false), dtype, {Array(dtype, {4, 2}, {m, m, -m, -m, 0, m, -3, -3})}));
  const double log_2 = 0.6931471805599453;
  const double expected[] = {m + log_2, -m + log_2, m, -3 + log_2};
  for (int i = 0; i < 4; ++i) {
    if (!(std::fabs(y[0].at(i) - expected[i]) <= 2 * epsilon(dtype) * std::fabs(expected[i]))) {
      throw Failure(fmt::format("row {}: expected {}, got {}", i, expected[i], y[0].str(i)));
    }
  }
}

}  // namespace

std::vector<OpCase> cases_reduce() {
  const std::vector<double> x{1, -2, 3.5, 0.25, 8, -16, 32, 0.5, 5, 6, 7, -8};
  const std::vector<double> whole{1, -2, 3, 0, 8, -6, 2, 5, 5, 6, 7, -8};
  const std::vector<double> odd{1, nan, inf, -inf, 2, 3, 4, 5, inf, inf, 1, 2};
  const std::vector<tenon_dtype> floats{f16, bf16, f32, f64}, integers{i32, i64};
  const Values distinct{.low = -2, .high = 2, .special = Special::all};
  const Values near_one{.low = -1.25, .high = 1.25, .gap = 0.8};
  const double powers_of_two[] = {0.5, 2, -1, 4};
  std::vector<double> factors;
  for (int i = 0; i < 12; ++i) factors.push_back(powers_of_two[i % 4]);
  const double large = 3e9;  // an i32 wraps
  const std::vector<Variant> products{over({1}, {0}, false, near_one),
                                      over({7}, {0}, true, near_one),
                                      over({8, 10}, {1}, false, near_one),
                                      over({8, 10}, {0}, false, near_one),
                                      over({2, 3, 4}, {0, 2}, false, {.sometimes = 0.0}),
                                      over({2, 3, 4, 5}, {1, 2}, true, {.sometimes = 0.0}),
                                      over({3, 500}, {1}, false, near_one),
                                      over({500, 7}, {0}, false, near_one),
                                      over({sized(70001, 1001)}, {0}, false, {.low = -1.0001, .high = 1.0001, .gap = 0.9999}),
                                      over({0}, {0}, false),
                                      over({3, 0}, {1}, false),
                                      over({0, 3}, {1}, false)};
  return {
      {.op = TENON_OP_ReduceSum,
       .variants = variants_and_nothing(),
       .bound = sum_bound,
       .gradient = {0},
       .golden = {{"rows", over({3, 4}, {1}, false), {x}, {{2.75, 24.5, 10}}, floats},
                  {"columns", over({3, 4}, {0}, true), {x}, {{14, -12, 42.5, -7.25}}, floats},
                  {"outer_and_inner", over({2, 3, 2}, {0, 2}, false), {x}, {{31.5, 14.75, -9}}, floats},
                  {"whole", over({3, 4}, {1}, false), {whole}, {{2, 9, 10}}},
                  {"wraps", over({3}, {0}, false), {{2147483647, 2147483647, 4}}, {{2}}, {i32}},
                  {"wide", over({3}, {0}, false), {{large, large, 4}}, {{2 * large + 4}}, {i64}},
                  {"nothing_is_zero", over({2, 0}, {1}, false), {{}}, {{0, 0}}}},
       .extras = {{"many_ones", check_many_ones},
                  {"beyond_doubles", check_beyond_doubles},
                  {"huge_view", check_huge_view},
                  with_equal_terms<TENON_OP_ReduceSum, sum_bound>()}},
      {.op = TENON_OP_ReduceMean,
       .variants = variants_and_nothing(),
       .bound = mean_bound,
       .gradient = {0},
       .golden = {{"rows", over({3, 4}, {1}, false), {x}, {{0.6875, 6.125, 2.5}}},
                  {"everything", over({3, 4}, {0, 1}, false), {x}, {{3.1041666666666665}}},
                  {"nothing_is_nan", over({2, 0}, {1}, false), {{}}, {{nan, nan}}}},
       .extras = {with_equal_terms<TENON_OP_ReduceMean, mean_bound>()}},
      {.op = TENON_OP_ReduceMax,
       .variants = variants(distinct),
       .bound = exact,
       .gradient = {0},
       .golden = {{"rows", over({3, 4}, {1}, false), {x}, {{3.5, 32, 7}}, floats},
                  {"columns", over({3, 4}, {0}, true), {x}, {{8, 6, 32, 0.5}}, floats},
                  {"whole", over({3, 4}, {0}, false), {whole}, {{8, 6, 7, 5}}},
                  {"ieee", over({3, 4}, {1}, false), {odd}, {{nan, 5, inf}}, floats},
                  {"no_result_of_nothing", over({0, 3}, {1}, false), {{}}, {{}}}}},
      {.op = TENON_OP_ReduceMin,
       .variants = variants(distinct),
       .bound = exact,
       .gradient = {0},
       .golden = {{"rows", over({3, 4}, {1}, false), {x}, {{-2, -16, -8}}, floats},
                  {"columns", over({3, 4}, {0}, true), {x}, {{1, -16, 3.5, -8}}, floats},
                  {"whole", over({3, 4}, {0}, false), {whole}, {{1, -6, 2, -8}}},
                  {"ieee", over({3, 4}, {1}, false), {odd}, {{nan, 2, 1}}, floats},
                  {"no_result_of_nothing", over({0, 3}, {1}, false), {{}}, {{}}}}},
      {.op = TENON_OP_ReduceProd,
       .variants = products,
       .bound = product_bound,
       .gradient = {0},
       .golden = {{"rows", over({3, 4}, {1}, false), {factors}, {{-4, -4, -4}}, floats},
                  {"columns", over({3, 4}, {0}, true), {factors}, {{0.125, 8, -1, 64}}, floats},
                  {"whole", over({3, 4}, {1}, false), {whole}, {{0, -480, -1680}}},
                  {"wraps", over({3}, {0}, false), {{65536, 65536, 4}}, {{0}}, {i32}},
                  {"ieee", over({3, 2}, {1}, false), {{inf, -2, 0, inf, nan, 0}}, {{-inf, nan, nan}}, floats},
                  {"nothing_is_one", over({2, 0}, {1}, false), {{}}, {{1, 1}}}}},
      {.op = TENON_OP_ReduceL1,
       .variants = variants_and_nothing({.gap = 0.01, .special = Special::not_large}),
       .bound = positive_bound,
       .gradient = {0},
       .golden = {{"rows", over({3, 4}, {1}, false), {x}, {{6.75, 56.5, 26}}},
                  {"ieee", over({3, 2}, {1}, false), {{inf, -inf, nan, inf, -0.0, 0}}, {{inf, nan, 0}}},
                  {"nothing_is_zero", over({2, 0}, {1}, false), {{}}, {{0, 0}}}},
       .extras = {with_equal_terms<TENON_OP_ReduceL1, positive_bound>()}},
      {.op = TENON_OP_ReduceL2,
       .variants = variants_and_nothing(),
       .bound = positive_bound,
       .gradient = {0},
       .golden = {{"rows", over({3, 2}, {1}, false), {{3, -4, 5, 12, -8, 15}}, {{5, 13, 17}}},
                  {"ieee", over({3, 2}, {1}, false), {{inf, -inf, nan, inf, -0.0, 0}}, {{inf, nan, 0}}},
                  {"nothing_is_zero", over({2, 0}, {1}, false), {{}}, {{0, 0}}}},
       .extras = {{"no_overflow_or_underflow", check_range}, with_equal_terms<TENON_OP_ReduceL2, positive_bound>()}},
      {.op = TENON_OP_ReduceSumSquare,
       .variants = variants_and_nothing(),
       .bound = positive_bound,
       .gradient = {0},
       .golden = {{"rows", over({3, 2}, {1}, false), {{3, -4, 5, 12, -8, 15}}, {{25, 169, 289}}},
                  {"nothing_is_zero", over({2, 0}, {1}, false), {{}}, {{0, 0}}}},
       .extras = {with_equal_terms<TENON_OP_ReduceSumSquare, positive_bound>()}},
      {.op = TENON_OP_ReduceLogSumExp,
       .variants = variants_and_nothing(),
       .bound = log_bound,
       .gradient = {0},
       .golden = {{"rows", over({2, 3}, {1}, false), {{1, 2, 3, -1, 0, 1}}, {{3.40760596444438, 1.4076059644443804}}},
                  {"ieee", over({4, 2}, {1}, false), {{inf, -inf, -inf, -inf, nan, inf, -inf, 2}}, {{inf, -inf, nan, 2}}},
                  {"nothing_is_minus_infinity", over({2, 0}, {1}, false), {{}}, {{-inf, -inf}}}},
       .extras = {{"logsumexp_exact", logsumexp_exact}}},
  };
}

}  // namespace tenon::conformance
