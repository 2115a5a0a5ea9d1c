// SPDX-License-Identifier: Apache-2.0
// LeakyRelu, Elu, Softplus, Mish, Gelu, Silu. Golden values: mpmath with 300 bits.
#include "elementwise.h"

namespace tenon::conformance {
namespace {

constexpr Tolerance one_rounding{"A product, rounded once: half an epsilon.", 1};
constexpr Tolerance four_ulp_but_tiny{
    "4 ulp at most: an ulp is half an epsilon of the largest numbers that have it. But where x is large and negative, "
    "the exponential is below the smallest normal number before x multiplies it, and may have lost digits or be 0: "
    "|x| is below 128 there in f32, below 768 in f64.",
    [](const Variant&, tenon_dtype t) -> Bound {
      return {2 * epsilon(t), t == f64 ? 768 * 2.3e-308 : 128 * 1.2e-38};
    }};
constexpr Tolerance mish_bound{
    "6 ulp at most: an exponential of 2 ulp, and the roundings of t = n (n + 2), t + 2, the quotient and the product. Where x is large "
    "and negative, as for Silu.",
    [](const Variant&, tenon_dtype t) -> Bound {
      return {3 * epsilon(t), t == f64 ? 768 * 2.3e-308 : 128 * 1.2e-38};
    }};
constexpr Tolerance gelu_bound{
    "Erf: in f32 an exponential, a quotient, a polynomial that enlarges the quotient's error up to 2.3 times near 0, "
    "and three products, 3.3 epsilon when all of them meet; in f64 the C library's erfc is within 5 ulp, and is "
    "multiplied twice. Tanh: 1 + tanh v is computed as a sigmoid of 2 v, whose relative error is that of its "
    "argument, |2 v| epsilon, where the result is e^(-|2 v|) at most: absolute.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      if (variant.attributes.as<tenon_attributes_gelu>().approximate_tanh == 1) return {3 * epsilon(t), epsilon(t)};
      return {(t == f64 ? 8 : 4) * epsilon(t), t == f64 ? 768 * 2.3e-308 : 128 * 1.2e-38};
    }};

AttributeBytes alpha(double value) {
  return tenon_attributes_alpha{.alpha = value};
}
AttributeBytes usual_alpha() {
  return alpha(0.125);
}
AttributeBytes erf_form() {
  return tenon_attributes_gelu{};
}
AttributeBytes approximate_tanh() {
  return tenon_attributes_gelu{.approximate_tanh = 1};
}

constexpr Values any{.low = -6, .high = 6, .special = Special::all};
constexpr Values no_kink{.low = -4, .high = 4, .gap = 0.05, .special = Special::all};

std::vector<Variant> alpha_variants() {
  std::vector<Variant> variants = of_every_shape(no_kink, usual_alpha(), "alpha=0.125");
  variants.push_back(of_shape({8, 10}, no_kink, alpha(1), "alpha=1"));
  variants.push_back(of_shape({8, 10}, no_kink, alpha(-0.3), "alpha=-0.3"));
  variants.push_back(of_shape({8, 10}, no_kink, alpha(0), "alpha=0"));
  return variants;
}
std::vector<Variant> gelu_variants() {
  std::vector<Variant> variants = of_every_shape(any, erf_form());
  for (Variant& variant : of_every_shape(any, approximate_tanh(), "tanh")) variants.push_back(std::move(variant));
  return variants;
}

}  // namespace

std::vector<OpCase> cases_activation() {
  const std::vector<double> x{0, 1, -1, 4, -4, -10, 30, 0.0009765625};
  return {
      {.op = TENON_OP_LeakyRelu,
       .variants = alpha_variants(),
       .bound = one_rounding,
       .gradient = {0},
       .golden = {values_at("values", {0, 1.5, -2, inf, -inf, nan}, {0, 1.5, -0.25, inf, -inf, nan}, {}, usual_alpha())},
       .extras = {at_all_magnitudes<TENON_OP_LeakyRelu, one_rounding, usual_alpha>()}},
      {.op = TENON_OP_Elu,
       .variants = alpha_variants(),
       .bound = four_ulp,
       .gradient = {0},
       .golden = {values_at("values", x, {0, 1, -0.6321205588285577, 4, -0.9816843611112658, -0.9999546000702375, 30, 0.0009765625}, {},
                            alpha(1)),
                  values_at("ends", {inf, -inf, nan, 9984, -9984}, {inf, -0.125, nan, 9984, -0.125}, {}, usual_alpha())},
       .extras = {at_all_magnitudes<TENON_OP_Elu, four_ulp, usual_alpha>()}},
      {.op = TENON_OP_Softplus,
       .variants = of_every_shape(any),
       .bound = four_ulp,
       .gradient = {0},
       .golden = {values_at("values", x,
                            {0.6931471805599453, 1.3132616875182228, 0.3132616875182228, 4.0181499279178094, 0.01814992791780974,
                             4.539889921686465e-05, 30.000000000000092, 0.6936355810192302}),
                  values_at("stable_at_1e4", {9984, -9984, inf, -inf, nan}, {9984, 0, inf, 0, nan})},
       .extras = {at_all_magnitudes<TENON_OP_Softplus, four_ulp>()}},
      {.op = TENON_OP_Mish,
       .variants = of_every_shape(any),
       .bound = mish_bound,
       .gradient = {0},
       .golden = {values_at("values", x,
                            {0, 0.8650983882673103, -0.3034014613741089, 3.9974128069762385, -0.07259174079202536, -0.00045398899185674697,
                             30, 0.000586242660838373}),
                  values_at("ends", {inf, -inf, nan, 9984, -9984}, {inf, 0, nan, 9984, 0})},
       .extras = {at_all_magnitudes<TENON_OP_Mish, mish_bound>()}},
      {.op = TENON_OP_Gelu,
       .variants = gelu_variants(),
       .bound = gelu_bound,
       .gradient = {0},
       .golden = {values_at("values", x,
                            {0, 0.8413447460685429, -0.15865525393145705, 3.9998733150326675, -0.0001266849673324797,
                             -7.619853024160526e-23, 30, 0.0004886617109460747},
                            {}, erf_form()),
                  values_at("tanh_values", x,
                            {0, 0.8411919906082767, -0.1588080093917233, 3.9999297540518075, -7.024594819237268e-05, 0, 30,
                             0.0004886617109457754},
                            {}, approximate_tanh()),
                  values_at("ends", {inf, -inf, nan, 9984, -9984}, {inf, 0, nan, 9984, 0}, {}, erf_form()),
                  values_at("tanh_ends", {inf, -inf, nan, 9984, -9984}, {inf, 0, nan, 9984, 0}, {}, approximate_tanh())},
       .extras = {at_all_magnitudes<TENON_OP_Gelu, gelu_bound, erf_form>(),
                  at_all_magnitudes<TENON_OP_Gelu, gelu_bound, approximate_tanh>("tanh_all_magnitudes")}},
      {.op = TENON_OP_Silu,
       .variants = of_every_shape(any),
       .bound = four_ulp_but_tiny,
       .gradient = {0},
       .golden = {values_at("values", x,
                            {0, 0.7310585786300049, -0.2689414213699951, 3.928055160151634, -0.07194483984836623, -0.00045397868702434395,
                             29.999999999997193, 0.0004885196685601537}),
                  values_at("ends", {inf, -inf, nan, 9984, -9984}, {inf, 0, nan, 9984, 0})},
       .extras = {at_all_magnitudes<TENON_OP_Silu, four_ulp_but_tiny>()}},
  };
}

}  // namespace tenon::conformance
