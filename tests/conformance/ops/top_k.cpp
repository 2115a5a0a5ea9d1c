// SPDX-License-Identifier: Apache-2.0
// TopK: values, copied bitwise, and their indices.
#include "op_family.h"

#include <algorithm>
#include <vector>

namespace tenon::conformance {
namespace {

Variant best(const Dims& shape, std::int64_t axis, std::int64_t k, bool largest = true, const Values& values = {.special = Special::all}) {
  tenon_attributes_top_k a{.largest = largest, .sorted = 1, .axis = axis, .k = k};
  Dims y = shape;
  y[static_cast<std::size_t>(axis)] = k;
  return {fmt::format("axis={},k={}{}{}", axis, k, largest ? "" : ",smallest", values.whole ? ",ties" : ""),
          {operand(shape, values)},
          {result(y), result(y, i64)},
          a};
}

/// sorted = 0 allows any order: the same values as at their indices, each index once.
void unsorted(CaseContext& context, tenon_dtype dtype) {
  Variant variant = best({3, 40}, 1, 7);
  tenon_attributes_top_k a = variant.attributes.as<tenon_attributes_top_k>();
  const auto inputs = fill(variant, dtype, seed_for(context.seed, "unsorted"));
  const auto sorted = context.run(net_of(line_of(TENON_OP_TopK), variant, dtype, inputs));
  a.sorted = 0;
  variant.attributes = a;
  const auto any = context.run(net_of(line_of(TENON_OP_TopK), variant, dtype, inputs));
  for (std::int64_t row = 0; row < 3; ++row) {
    std::vector<double> expected, got;
    for (std::int64_t k = 0; k < 7; ++k) {
      expected.push_back(sorted[1].at(row * 7 + k));
      got.push_back(any[1].at(row * 7 + k));
      const std::int64_t place = static_cast<std::int64_t>(got.back());
      if (place < 0 || place >= 40) throw Failure(fmt::format("row {}: index {} of 40", row, place));
      if (any[0].at(row * 7 + k) != inputs[0].at(row * 40 + place)) {
        throw Failure(fmt::format("row {}: value {} is {}, but element {} is {}", row, k, any[0].str(row * 7 + k), place,
                                  inputs[0].str(row * 40 + place)));
      }
    }
    std::sort(expected.begin(), expected.end());
    std::sort(got.begin(), got.end());
    if (expected != got) throw Failure(fmt::format("row {}: different elements than with sorted = 1", row));
  }
}

}  // namespace

std::vector<OpCase> cases_top_k() {
  const std::int64_t n = sized(20011, 6007);
  // ties only in variants that are too large for finite differences, which ties would invalidate
  const Values few{.low = -3, .high = 4, .whole = true};
  const Variant row = best({1, 6}, 1, 4), smallest = best({1, 6}, 1, 4, false);
  return {{
      .op = TENON_OP_TopK,
      .variants = {best({5}, 0, 2), best({5}, 0, 5, false), best({8, 10}, 1, 3), best({8, 10}, 0, 3, false), best({2, 3, 5}, 1, 1),
                   best({4, 40}, 1, 11), best({4, 40}, 1, 9, false), best({2, 33, 7}, 1, 5), best({3, 4}, 1, 0), best({0, 4}, 1, 2),
                   best({4, 0}, 1, 0), best({n}, 0, 5), best({n}, 0, 5, false, few), best({3, n}, 1, 300, true, few),
                   best({2, 3000}, 1, 2000, false, few), best({700, 9}, 0, 20, true, few)},
      .bound = moved,
      .gradient = {0},
      .gradient_ops = {TENON_OP_ScatterElements},
      .golden = {{"ties_take_the_first", row, {{1, 3, 3, 2, 3, 1}}, {{3, 3, 3, 2}, {1, 2, 4, 3}}},
                 {"smallest", smallest, {{1, 3, 3, 2, 3, 1}}, {{1, 1, 2, 3}, {0, 5, 3, 1}}},
                 {"nan_is_largest", row, {{1, nan, inf, -inf, nan, 0}}, {{nan, nan, inf, 1}, {1, 4, 2, 0}}, {f16, bf16, f32, f64}},
                 {"nan_is_not_small", smallest, {{1, nan, inf, -inf, nan, 0}}, {{-inf, 0, 1, inf}, {3, 5, 0, 2}}, {f16, bf16, f32, f64}},
                 {"zeros_are_equal", smallest, {{0, -0.0, 0, -0.0, 1, -1}}, {{-1, 0, -0.0, 0}, {5, 0, 1, 2}}, {f16, bf16, f32, f64}}},
      .extras = {{"unsorted", unsorted}},
  }};
}

}  // namespace tenon::conformance
