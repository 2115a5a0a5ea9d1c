// Equal: exact, so the answer is too.
#include "room.h"

namespace tenon::conformance {

std::vector<OpCase> cases_compare() {
  const Values few{.low = 0, .high = 3, .whole = true, .special = Special::all};  // so that many are equal
  std::vector<Variant> variants;
  const std::vector<std::pair<Dims, Dims>> shapes{
      {{}, {}},         {{1}, {1}},      {{3, 5}, {3, 5}}, {{8, 10}, {10}},
      {{5, 1}, {1, 7}}, {{2, 3, 4}, {}}, {{0, 4}, {4}},    {{sized(9001, 301)}, {sized(9001, 301)}}};
  for (const auto& [a, b] : shapes) {
    variants.push_back({"", {operand(a, few), operand(b, few)}, {result(broadcast(a, b), boolean)}});
  }
  return {{
      .op = TENON_OP_Equal,
      .variants = variants,
      .golden =
          {{"ones_and_zeros", {"", {operand({2, 2}), operand({2})}, {result({2, 2}, boolean)}}, {{0, 1, 1, 1}, {0, 1}}, {{1, 1, 0, 1}}},
           {"ieee",
            {"", {operand({6}), operand({6})}, {result({6}, boolean)}},
            {{nan, inf, -inf, 0.0, 1.5, nan}, {nan, inf, inf, -0.0, 1.5, 1}},
            {{0, 1, 0, 1, 1, 0}},
            {f32, f64}}},
  }};
}

}  // namespace tenon::conformance
