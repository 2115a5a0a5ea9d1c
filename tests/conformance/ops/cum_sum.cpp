// SPDX-License-Identifier: Apache-2.0
// CumSum: running sums from either end, inclusive and exclusive.
#include "op_family.h"

namespace tenon::conformance {
namespace {

Variant sums(const Dims& shape, std::int64_t axis, bool exclusive = false, bool reverse = false) {
  return {fmt::format("axis={}{}{}", axis, exclusive ? ",exclusive" : "", reverse ? ",reverse" : ""),
          {operand(shape, {.special = Special::not_large})},
          {result(shape)},
          tenon_attributes_cum_sum{.exclusive = exclusive, .reverse = reverse, .axis = axis}};
}

constexpr Tolerance bound{"Sums of n numbers up to 2, one after the other or by parts: off by about root(n) roundings of at most 2 n.",
                          [](const Variant& variant, tenon_dtype t) -> Bound {
                            if (!is_float(t)) return {};
                            const auto n = static_cast<double>(
                                variant.inputs[0].shape[static_cast<std::size_t>(variant.attributes.as<tenon_attributes_cum_sum>().axis)]);
                            return {epsilon(t), epsilon(t) * n * std::sqrt(n)};
                          }};

}  // namespace

std::vector<OpCase> cases_cum_sum() {
  std::vector<Variant> variants;
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      variants.push_back(sums({7}, 0, exclusive, reverse));
      variants.push_back(sums({2, 3, 5}, 1, exclusive, reverse));
      variants.push_back(sums({5, sized(700, 270)}, 0, exclusive, reverse));  // adjacent lines, more than fit a bundle
      variants.push_back(sums({3, sized(5000, 500)}, 1, exclusive, reverse));
      variants.push_back(sums({sized(2000, 300), 3}, 0, exclusive, reverse));  // long adjacent lines, in several parts
    }
  }
  variants.push_back(sums({0, 4}, 1));
  variants.push_back(sums({4, 0}, 1));
  variants.push_back(sums({4, 0}, 0, true));
  variants.push_back(sums({3, 1}, 1, true));
  return {{
      .op = TENON_OP_CumSum,
      .variants = variants,
      .bound = bound,
      .gradient = {0},
      // NumPy: cumsum, also shifted and reversed
      .golden = {{"plain", sums({2, 3}, 1), {{1, 2, 3, -4, 5, 6}}, {{1, 3, 6, -4, 1, 7}}},
                 {"columns", sums({2, 3}, 0), {{1, 2, 3, -4, 5, 6}}, {{1, 2, 3, -3, 7, 9}}},
                 {"exclusive", sums({2, 3}, 1, true), {{1, 2, 3, -4, 5, 6}}, {{0, 1, 3, 0, -4, 1}}},
                 {"reverse", sums({2, 3}, 1, false, true), {{1, 2, 3, -4, 5, 6}}, {{6, 5, 3, 7, 11, 6}}},
                 {"exclusive_reverse", sums({2, 3}, 1, true, true), {{1, 2, 3, -4, 5, 6}}, {{5, 3, 0, 11, 6, 0}}}},
  }};
}

}  // namespace tenon::conformance
