// Add, Sub, Mul, Div: one rounding each, with NumPy's broadcasting.
#include "room.h"

namespace tenon::conformance {
namespace {

/// IEEE arithmetic rounds these once: half an epsilon. A second half allows a quotient made of a reciprocal and a correction.
Bound one_rounding(const Variant&, tenon_dtype t) {
  return {epsilon(t), 0};
}

std::vector<Variant> pairs(const Values& a, const Values& b) {
  const std::vector<std::pair<Dims, Dims>> shapes{{{}, {}},
                                                  {{1}, {1}},
                                                  {{7}, {7}},
                                                  {{3, 5}, {3, 5}},
                                                  {{8, 10}, {10}},
                                                  {{8, 10}, {8, 1}},
                                                  {{5, 1}, {1, 7}},
                                                  {{2, 3, 4}, {}},
                                                  {{4}, {2, 3, 4}},
                                                  {{2, 1, 3, 1}, {4, 1, 5}},
                                                  {{0}, {0}},
                                                  {{0, 4}, {4}},
                                                  {{3, 0}, {1, 1}},
                                                  {{sized(1003, 103), 17}, {17}},
                                                  {{sized(70001, 1001)}, {sized(70001, 1001)}}};
  std::vector<Variant> variants;
  for (const auto& [left, right] : shapes) {
    variants.push_back({"", {operand(left, a), operand(right, b)}, {result(broadcast(left, right))}});
  }
  return variants;
}

constexpr Values plain{.special = Special::all};
/// Away from zero: the derivative of a quotient is as steep as its denominator is small.
constexpr Values denominator{.low = -3, .high = 3, .gap = 0.5, .special = Special::all};

/// Eighths are exact in every floating type, so the results below are exact, too.
Golden eighths(std::vector<double> expected) {
  return {"eighths",
          {"", {operand({2, 3}), operand({3})}, {result({2, 3})}},
          {{1.5, -2.25, 0.125, 4, 0, -8}, {0.5, 2, -4}},
          {std::move(expected)}};
}
Golden ieee(std::vector<double> expected) {
  return {"ieee",
          {"", {operand({9}), operand({9})}, {result({9})}},
          {{inf, inf, -inf, nan, 1, 0, 0, -1, inf}, {1, -inf, -inf, 1, 0, 0, -1, inf, 0}},
          {std::move(expected)}};
}

OpCase binary(tenon_op op, const Values& b, Golden values, Golden special) {
  return {
      .op = op, .variants = pairs(plain, b), .bound = one_rounding, .gradient = {0, 1}, .golden = {std::move(values), std::move(special)}};
}

}  // namespace

std::vector<OpCase> cases_binary() {
  return {
      binary(TENON_OP_Add, plain, eighths({2, -0.25, -3.875, 4.5, 2, -12}), ieee({inf, nan, -inf, nan, 1, 0, -1, inf, inf})),
      binary(TENON_OP_Sub, plain, eighths({1, -4.25, 4.125, 3.5, -2, -4}), ieee({inf, inf, nan, nan, 1, 0, 1, -inf, inf})),
      binary(TENON_OP_Mul, plain, eighths({0.75, -4.5, -0.5, 2, 0, 32}), ieee({inf, -inf, inf, nan, 0, 0, 0, -inf, nan})),
      binary(TENON_OP_Div, denominator, eighths({3, -1.125, -0.03125, 8, 0, 2}), ieee({inf, nan, nan, nan, inf, nan, 0, 0, inf})),
  };
}

}  // namespace tenon::conformance
