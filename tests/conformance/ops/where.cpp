// SPDX-License-Identifier: Apache-2.0
// Where: elements are copied bitwise.
#include "elementwise.h"

namespace tenon::conformance {
namespace {

Variant chosen(const Dims& condition, const Dims& a, const Dims& b) {
  const Values any{.special = Special::all};
  return {"", {operand(condition, {}, boolean), operand(a, any), operand(b, any)}, {result(broadcast(broadcast(condition, a), b))}};
}

std::vector<Variant> variants() {
  const std::int64_t n = sized(70001, 1001);
  return {chosen({}, {}, {}),
          chosen({1}, {1}, {1}),
          chosen({7}, {7}, {7}),
          chosen({3, 5}, {3, 5}, {3, 5}),
          chosen({3, 5}, {}, {3, 5}),
          chosen({3, 5}, {3, 5}, {1}),
          chosen({3, 5}, {}, {}),
          chosen({3, 1}, {1, 5}, {3, 5}),
          chosen({6, 6}, {6, 1}, {6}),
          chosen({5}, {3, 1}, {2, 1, 1}),
          chosen({}, {2, 3}, {3}),
          chosen({2, 1, 3, 1}, {4, 1, 5}, {1, 3, 1}),
          chosen({0}, {0}, {0}),
          chosen({0, 4}, {4}, {1}),
          chosen({n}, {n}, {n}),
          chosen({n}, {1}, {n}),
          chosen({sized(1003, 103), 17}, {sized(1003, 103), 1}, {17})};
}

}  // namespace

std::vector<OpCase> cases_where() {
  const Variant rows{"", {operand({2, 3}, {}, boolean), operand({3}), operand({2, 1})}, {result({2, 3})}};
  const Variant pairs{"", {operand({4}, {}, boolean), operand({4}), operand({4})}, {result({4})}};
  return {{
      .op = TENON_OP_Where,
      .variants = variants(),
      .bound = moved,
      .gradient = {1, 2},
      .golden =
          {{"rows", rows, {{1, 0, 1, 0, 0, 1}, {1, 0, 1}, {0, 1}}, {{1, 0, 1, 1, 1, 1}}},
           // elements that are not selected do not matter
           {"nan_stays_out", pairs, {{1, 0, 1, 0}, {1, nan, nan, inf}, {nan, 2, 3, -inf}}, {{1, 2, nan, -inf}}, {f16, bf16, f32, f64}}},
  }};
}

}  // namespace tenon::conformance
