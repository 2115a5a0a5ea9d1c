// SPDX-License-Identifier: Apache-2.0
// ArgMax, ArgMin: an index, so exact. Ties go to the first.
#include "op_family.h"

namespace tenon::conformance {
namespace {

Variant along(const Dims& shape, std::int64_t axis, bool keepdims, const Values& values) {
  tenon_attributes_axis attributes{.keepdims = keepdims, .axis = axis};
  Dims reduced = shape;
  if (keepdims) {
    reduced[static_cast<std::size_t>(axis)] = 1;
  } else {
    reduced.erase(reduced.begin() + axis);
  }
  return {fmt::format("axis={}{}", axis, keepdims ? "/keepdims" : ""), {operand(shape, values)}, {result(reduced, i64)}, attributes};
}

}  // namespace

std::vector<OpCase> cases_arg_reduce() {
  const Values few{.low = 0, .high = 4, .whole = true, .special = Special::not_large};  // so that ties are common
  const Values many{.low = -9, .high = 9, .special = Special::not_large};
  const std::vector<tenon_dtype> floats{f16, bf16, f32, f64};
  std::vector<Variant> variants{along({1}, 0, false, few),
                                along({7}, 0, true, few),
                                along({8, 10}, 1, false, few),
                                along({8, 10}, 0, false, many),
                                along({2, 3, 5}, 1, true, few),
                                along({2, 3, 4, 5}, 2, false, many),
                                along({0, 3}, 1, false, few),
                                along({3, 0}, 0, false, few),
                                along({5, sized(3001, 301)}, 1, false, few),
                                along({sized(1009, 109), 6}, 0, false, many)};
  return {
      {.op = TENON_OP_ArgMax,
       .variants = variants,
       .bound = decided,
       .golden = {{"ties_first", along({2, 4}, 1, false, few), {{1, 3, 3, 2, 5, 5, 5, 5}}, {{1, 0}}},
                  {"columns", along({3, 2}, 0, true, few), {{1, 9, 4, 9, 4, -1}}, {{1, 0}}},
                  {"ieee", along({3, 3}, 1, false, few), {{1, nan, nan, -inf, -inf, -inf, 0, inf, nan}}, {{1, 0, 2}}, floats}}},
      {.op = TENON_OP_ArgMin,
       .variants = variants,
       .bound = decided,
       .golden = {{"ties_first", along({2, 4}, 1, false, few), {{3, 1, 1, 2, 5, 5, 5, 5}}, {{1, 0}}},
                  {"columns", along({3, 2}, 0, true, few), {{4, -1, 1, 9, 1, -1}}, {{1, 0}}},
                  {"ieee", along({3, 3}, 1, false, few), {{1, nan, nan, inf, inf, inf, 0, -inf, nan}}, {{1, 0, 2}}, floats}}},
  };
}

}  // namespace tenon::conformance
