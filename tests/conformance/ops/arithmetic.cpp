// SPDX-License-Identifier: Apache-2.0
// Abs, Sign, Ceil, Floor, Round, Sqrt, Rsqrt, Reciprocal, Clip.
#include "elementwise.h"

namespace tenon::conformance {
namespace {

constexpr Tolerance sign_bound{"Numbers are compared; nothing is rounded."};
constexpr Tolerance exact = Tolerance{"Bits are cleared or numbers compared; nothing is rounded."}.with_signed_zeros();
constexpr Tolerance one_rounding =
    Tolerance{"A square root, a quotient, a bound that is not representable in the dtype: each is rounded once, by half an epsilon.", 1}
        .with_signed_zeros();
constexpr Tolerance clip_bound{"A bound that is not representable in the dtype is rounded once, by half an epsilon.", 1};
constexpr Tolerance two_roundings{"A square root and a quotient: half an epsilon, half of that again, and half an epsilon.", 1.5};

const std::vector<tenon_dtype> floats{f16, bf16, f32, f64};
constexpr Values no_kink{.low = -3, .high = 3, .gap = 0.05, .special = Special::all};
constexpr Values positive{.low = 0.25, .high = 4, .special = Special::all};

AttributeBytes bounds(double low, double high) {
  return tenon_attributes_clip{.low = low, .high = high};
}
AttributeBytes usual_bounds() {
  return bounds(-1.1, 1.7);
}

std::vector<Variant> clip_variants() {
  std::vector<Variant> variants = of_every_shape(no_kink, usual_bounds(), "low=-1.1/high=1.7");
  variants.push_back(of_shape({8, 10}, no_kink, bounds(-inf, 1), "high=1"));
  variants.push_back(of_shape({8, 10}, no_kink, bounds(0, inf), "low=0"));
  variants.push_back(of_shape({8, 10}, no_kink, bounds(-inf, inf), "unbounded"));
  return variants;
}

}  // namespace

std::vector<OpCase> cases_arithmetic() {
  return {
      {.op = TENON_OP_Abs,
       .variants = of_every_shape(no_kink),
       .bound = exact,
       .gradient = {0},
       .gradient_ops = {TENON_OP_Sign},
       .golden = {values_at("signs", {1.5, -2, 0, -0.0, inf, -inf, nan}, {1.5, 2, 0, 0, inf, inf, nan}, floats),
                  values_at("wraps_i32", {-5, 2147483647, -2147483648.0}, {5, 2147483647, -2147483648.0}, {i32}),
                  values_at("wraps_i64", {-5, 4, -0x1p63}, {5, 4, -0x1p63}, {i64})},
       .extras = {at_all_magnitudes<TENON_OP_Abs, exact>()}},
      {.op = TENON_OP_Sign,
       .variants = of_every_shape(no_kink),
       .bound = sign_bound,
       .gradient = {0},
       .golden = {values_at("signs", {1.5, -2, 0, -0.0, inf, -inf, nan}, {1, -1, 0, 0, 1, -1, nan}, floats),
                  values_at("integers", {-5, 0, 2147483647, -2147483648.0}, {-1, 0, 1, -1}, {i32, i64})},
       .extras = {at_all_magnitudes<TENON_OP_Sign, sign_bound>()}},
      {.op = TENON_OP_Ceil,
       .variants = of_every_shape(no_kink),
       .bound = exact,
       .gradient = {0},
       .golden = {values_at("values", {1.5, -1.5, 0.125, -0.125, 2, -0.0, inf, -inf, nan}, {2, -1, 1, -0.0, 2, -0.0, inf, -inf, nan})},
       .extras = {at_all_magnitudes<TENON_OP_Ceil, exact>()}},
      {.op = TENON_OP_Floor,
       .variants = of_every_shape(no_kink),
       .bound = exact,
       .gradient = {0},
       .golden = {values_at("values", {1.5, -1.5, 0.125, -0.125, 2, -0.0, inf, -inf, nan}, {1, -2, 0, -1, 2, -0.0, inf, -inf, nan})},
       .extras = {at_all_magnitudes<TENON_OP_Floor, exact>()}},
      {.op = TENON_OP_Round,
       .variants = of_every_shape(no_kink),
       .bound = exact,
       .gradient = {0},
       .golden = {values_at("halves_to_even", {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.75, inf, nan}, {0, 2, 2, -0.0, -2, -2, 3, inf, nan})},
       .extras = {at_all_magnitudes<TENON_OP_Round, exact>()}},
      {.op = TENON_OP_Sqrt,
       .variants = of_every_shape(positive),
       .bound = one_rounding,
       .gradient = {0},
       .golden = {values_at("values", {0.25, 2, 3, 1024, 0, -0.0, -1, inf, nan},
                            {0.5, 1.4142135623730951, 1.7320508075688772, 32, 0, -0.0, nan, inf, nan})},
       .extras = {at_all_magnitudes<TENON_OP_Sqrt, one_rounding>()}},
      {.op = TENON_OP_Rsqrt,
       .variants = of_every_shape(positive),
       .bound = two_roundings,
       .gradient = {0},
       .golden = {values_at("values", {0.25, 2, 3, 1024, 0, -1, inf, nan},
                            {2, 0.7071067811865476, 0.5773502691896257, 0.03125, inf, nan, 0, nan})},
       .extras = {at_all_magnitudes<TENON_OP_Rsqrt, two_roundings>()}},
      {.op = TENON_OP_Reciprocal,
       .variants = of_every_shape({.low = -3, .high = 3, .gap = 0.5, .special = Special::all}),
       .bound = one_rounding,
       .gradient = {0},
       .golden = {values_at("values", {0.25, -2, 3, 0, -0.0, inf, -inf, nan}, {4, -0.5, 0.3333333333333333, inf, -inf, 0, -0.0, nan})},
       .extras = {at_all_magnitudes<TENON_OP_Reciprocal, one_rounding>()}},
      {.op = TENON_OP_Clip,
       .variants = clip_variants(),
       // bounds that are not numbers of the dtype are rounded to it
       .bound = clip_bound,
       .gradient = {0},
       .golden = {values_at("values", {-3, -1, 0.5, 6, 7, inf, -inf, nan}, {-1, -1, 0.5, 6, 6, 6, -1, nan}, floats, bounds(-1, 6)),
                  values_at("low_above_high", {-3, 0, 3}, {1, 1, 1}, {}, bounds(2, 1)),
                  values_at("integers", {-5, -1, 0, 3, 9}, {-1, -1, 0, 3, 3}, {i32, i64}, bounds(-1.5, 3.5)),
                  values_at("beyond_the_range", {-2147483648.0, 2147483647}, {-2147483648.0, 2147483647}, {i32}, bounds(-1e10, inf))},
       .extras = {at_all_magnitudes<TENON_OP_Clip, clip_bound, usual_bounds>()}},
  };
}

}  // namespace tenon::conformance
