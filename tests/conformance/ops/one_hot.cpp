// SPDX-License-Identifier: Apache-2.0
// OneHot: exact.
#include "op_family.h"

namespace tenon::conformance {
namespace {

Variant marked(const Dims& indices, std::int64_t depth, std::int64_t axis, tenon_dtype dtype = i64, double off = 0, double on = 1) {
  tenon_attributes_one_hot attributes{.axis = axis, .off = off, .on = on};
  Dims y = indices;
  y.insert(y.begin() + axis, depth);
  const auto n = static_cast<double>(depth);
  // also out of range on either side
  return {fmt::format("depth={}/axis={}{}{}", depth, axis, dtype == i32 ? "/i32" : "", off != 0 ? "/inverted" : ""),
          {operand(indices, {.low = -n - 2, .high = n + 2, .whole = true}, dtype)},
          {result(y)},
          attributes};
}

}  // namespace

std::vector<OpCase> cases_one_hot() {
  return {{
      .op = TENON_OP_OneHot,
      .variants = {marked({}, 3, 0), marked({5}, 4, 1), marked({5}, 4, 0, i32), marked({2, 3}, 5, 2, i32), marked({2, 3}, 5, 1, i64, 1, 0),
                   marked({2, 3}, 1, 0), marked({0}, 4, 1), marked({4}, 0, 0), marked({sized(3001, 301)}, 10, 1),
                   marked({3, 67}, 31, 1, i32)},
      .bound = moved,
      .golden =
          {{"rows", marked({3}, 3, 1), {{1, 0, -1}}, {{0, 1, 0, 1, 0, 0, 0, 0, 1}}},
           {"columns", marked({3}, 2, 0, i32), {{1, 0, -2}}, {{0, 1, 1, 1, 0, 0}}},
           {"outside", marked({4}, 2, 1), {{2, -3, 1000, 1}}, {{0, 0, 0, 0, 0, 0, 0, 1}}},
           {"half", marked({1}, 2, 1, i64, 0.1, 0.9), {{1}}, {{0.0999755859375, 0.89990234375}}, {f16}},
           {"values", marked({2}, 2, 1, i64, -2, 7), {{1, 0}}, {{-2, 7, 7, -2}}, {f32, f64, TENON_DTYPE_I8, TENON_DTYPE_I16, i32, i64}}},
  }};
}

}  // namespace tenon::conformance
