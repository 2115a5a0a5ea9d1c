// SPDX-License-Identifier: Apache-2.0
// Equal, Less and their variants: exact.
#include "elementwise.h"

#include <iterator>

namespace tenon::conformance {
namespace {

constexpr Values few{.low = 0, .high = 3, .whole = true, .special = Special::all};  // so that many are equal

std::vector<Variant> variants() {
  const std::vector<std::pair<Dims, Dims>> shapes{{{}, {}},
                                                  {{1}, {1}},
                                                  {{3, 5}, {3, 5}},
                                                  {{8, 10}, {10}},
                                                  {{6, 6}, {6}},
                                                  {{6, 6}, {6, 1}},
                                                  {{4, 4, 4}, {4, 1, 4}},
                                                  {{5, 1}, {1, 7}},
                                                  {{2, 3, 4}, {}},
                                                  {{0, 4}, {4}},
                                                  {{sized(9001, 301)}, {sized(9001, 301)}}};
  std::vector<Variant> list;
  for (const auto& [a, b] : shapes) list.push_back({"", {operand(a, few), operand(b, few)}, {result(broadcast(a, b), boolean)}});
  return list;
}

Golden of_two(const std::string& name, std::vector<double> a, std::vector<double> b, std::vector<double> y,
              std::vector<tenon_dtype> dtypes = {}) {
  const auto n = static_cast<std::int64_t>(y.size());
  return {
      name, {"", {operand({n}), operand({n})}, {result({n}, boolean)}}, {std::move(a), std::move(b)}, {std::move(y)}, std::move(dtypes)};
}

/// 64-bit integers beyond 2^53 are not doubles, and so not in golden vectors; in u64 the last pair has the top bit.
template <tenon_op op>
void check_beyond_doubles(CaseContext& context, tenon_dtype dtype) {
  if (dtype != i64 && dtype != u64) return;
  constexpr std::uint64_t pairs[][2] = {{(1ull << 53) + 1, 1ull << 53},
                                        {1ull << 53, (1ull << 53) + 1},
                                        {(1ull << 63) - 1, (1ull << 63) - 2},
                                        {(1ull << 62) + 5, (1ull << 62) + 5},
                                        {~0ull, ~0ull - 1}};
  const auto n = static_cast<std::int64_t>(std::size(pairs));
  Array a(dtype, {n}), b(dtype, {n});
  for (std::int64_t i = 0; i < n; ++i) {
    a.put(i, pairs[i][0]);
    b.put(i, pairs[i][1]);
  }
  const auto y = context.run(net_of(line_of(op), {"", {operand({n}), operand({n})}, {result({n}, boolean)}}, dtype, {a, b}));
  for (std::int64_t i = 0; i < n; ++i) {
    const bool less = pairs[i][0] < pairs[i][1], equal = pairs[i][0] == pairs[i][1];  // as i64 in the same order
    const bool expected = op == TENON_OP_Equal         ? equal
                          : op == TENON_OP_Less        ? less
                          : op == TENON_OP_LessOrEqual ? less || equal
                          : op == TENON_OP_Greater     ? !less && !equal
                                                       : !less;
    if ((y[0].at(i) != 0) != expected)
      throw Failure(fmt::format("{} of {} and {} is {}", line_of(op).name, a.str(i), b.str(i), y[0].str(i)));
  }
}

/// The results for (0, 0), (0, 1), (1, 0), (1, 1); for ten IEEE pairs; and for three pairs with and without a sign bit.
template <tenon_op op>
OpCase comparison(std::vector<double> ones_and_zeros, std::vector<double> ieee, std::vector<double> large) {
  using std::move;
  return {.op = op,
          .variants = variants(),
          .bound = decided,
          .golden = {of_two("ones_and_zeros", {0, 0, 1, 1}, {0, 1, 0, 1}, move(ones_and_zeros)),
                     of_two("ieee", {nan, inf, -inf, 0.0, 1.5, nan, 1, -1.5, -inf, 2}, {nan, inf, inf, -0.0, 1.5, 1, nan, -0.5, -2, 1},
                            ieee, {f16, bf16, f32, f64}),
                     of_two("signed", {-1, 1, -2}, {1, -1, -1}, large, {f16, bf16, f32, f64, TENON_DTYPE_I8, TENON_DTYPE_I16, i32, i64}),
                     // unsigned values with the top bit are large, not negative
                     of_two("unsigned_8", {255, 1, 254}, {1, 255, 255}, {large[1], large[0], large[2]}, {u8}),
                     of_two("unsigned_16", {65535, 1, 65534}, {1, 65535, 65535}, {large[1], large[0], large[2]}, {TENON_DTYPE_U16}),
                     of_two("unsigned_32", {4294967295, 1, 4294967294}, {1, 4294967295, 4294967295}, {large[1], large[0], large[2]},
                            {TENON_DTYPE_U32}),
                     of_two("unsigned_64", {0x1p63, 1, 0x1p62}, {1, 0x1p63, 0x1p63}, {large[1], large[0], large[2]}, {u64})},
          .extras = {{"beyond_doubles", check_beyond_doubles<op>}}};
}

}  // namespace

std::vector<OpCase> cases_compare() {
  return {
      comparison<TENON_OP_Equal>({1, 0, 0, 1}, {0, 1, 0, 1, 1, 0, 0, 0, 0, 0}, {0, 0, 0}),
      comparison<TENON_OP_Less>({0, 1, 0, 0}, {0, 0, 1, 0, 0, 0, 0, 1, 1, 0}, {1, 0, 1}),
      comparison<TENON_OP_LessOrEqual>({1, 1, 0, 1}, {0, 1, 1, 1, 1, 0, 0, 1, 1, 0}, {1, 0, 1}),
      comparison<TENON_OP_Greater>({0, 0, 1, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, {0, 1, 0}),
      comparison<TENON_OP_GreaterOrEqual>({1, 0, 1, 1}, {0, 1, 0, 1, 1, 0, 0, 0, 0, 1}, {0, 1, 0}),
  };
}

}  // namespace tenon::conformance
