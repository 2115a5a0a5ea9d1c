// SPDX-License-Identifier: Apache-2.0
// Neg, Relu, Sigmoid, Tanh and the gradients that use the function's result.
#include "elementwise.h"

namespace tenon::conformance {
namespace {

std::vector<Variant> of_dy_and_y(const Values& y) {
  std::vector<Variant> variants;
  for (const Dims& shape : elementwise_shapes()) {
    variants.push_back({"", {operand(shape, {.special = Special::not_large}), operand(shape, y)}, {result(shape)}});
  }
  return variants;
}

constexpr Tolerance negated = Tolerance{"A sign is changed: nothing is rounded."}.with_signed_zeros();
constexpr Tolerance exact{"A comparison: nothing is rounded."};
constexpr Tolerance sigmoid_bound{"exp within 1 epsilon, a sum, a quotient; below the smallest normal number one may give 0.",
                                  [](const Variant&, tenon_dtype t) -> Bound {
                                    return {4 * epsilon(t), t == f64 ? 2.3e-308 : 1.2e-38};
                                  }};
constexpr Tolerance tanh_bound =
    Tolerance{
        "Within 2 epsilon of the result, near 0 as well: a vectorised tanh that took a quotient of exponentials there "
        "would cancel.",
        4}
        .with_signed_zeros();
constexpr Tolerance product_bound{
    "dy y (1 - y): 1 - y is exact or rounded once, two products more. The oracle's y is the rounded one, so 1 - y "
    "does not cancel.",
    3};
constexpr Tolerance tanh_grad_bound{"1 - y^2 rounds by half an epsilon of 1, however small it is itself; |dy| is 2 at most.", 3, 2};

Variant two(std::int64_t n) {
  return {"", {operand({n}), operand({n})}, {result({n})}};
}

std::string between_0_and_1(const Variant&, tenon_dtype, const std::vector<Array>&, const std::vector<Array>& outputs) {
  for (std::int64_t i = 0; i < outputs[0].count(); ++i) {
    if (!(outputs[0].at(i) >= 0 && outputs[0].at(i) <= 1)) return fmt::format("element {} is {}", i, outputs[0].str(i));
  }
  return {};
}

}  // namespace

std::vector<OpCase> cases_unary() {
  const Values any{.low = -30, .high = 30, .special = Special::all};
  const Values no_kink{.low = -2, .high = 2, .gap = 0.05, .special = Special::all};
  const Values result_of_relu{.low = 0, .high = 2, .sometimes = 0.0};
  return {
      {.op = TENON_OP_Neg,
       .variants = of_every_shape(any),
       .bound = negated,
       .gradient = {0},
       .golden = {values_at("signs", {1.5, -2, 0, inf, -inf, nan}, {-1.5, 2, -0.0, -inf, inf, nan}, {f16, bf16, f32, f64}),
                  values_at("wraps_i32", {2147483647, -2147483648.0}, {-2147483647, -2147483648.0}, {i32}),
                  values_at("wraps_i64", {5, -0x1p63}, {-5, -0x1p63}, {i64})}},
      {.op = TENON_OP_Relu,
       .variants = of_every_shape(no_kink),
       .bound = exact,
       .gradient = {0},
       .gradient_ops = {TENON_OP_ReluGrad},
       .golden = {values_at("signs", {1.5, -2, 0, inf, -inf, nan}, {1.5, 0, 0, inf, 0, nan})}},
      {.op = TENON_OP_ReluGrad,
       .variants = of_dy_and_y(result_of_relu),
       .bound = exact,
       // the derivative at 0 is 0
       .golden = {{"at_and_around_zero", two(4), {{3, -4, 5, -6}, {0, 0.5, 2, 0}}, {{0, -4, 5, 0}}}}},
      {.op = TENON_OP_Sigmoid,
       .variants = of_every_shape(any),
       .bound = sigmoid_bound,
       .gradient = {0},
       .gradient_ops = {TENON_OP_SigmoidGrad},
       .also = {{"between_0_and_1", between_0_and_1}},
       .golden = {values_at("values", {0, 1, -1, 4.5, -20, 40, inf, -inf},
                            {0.5, 0.7310585786300049, 0.2689414213699951, 0.9890130573694068, 2.0611536181902033e-09, 1, 1, 0}),
                  values_at("stable_at_1e4", {9984, -9984}, {1, 0})},
       .extras = {at_all_magnitudes<TENON_OP_Sigmoid, sigmoid_bound>()}},
      {.op = TENON_OP_SigmoidGrad,
       .variants = of_dy_and_y({.low = 0, .high = 1}),
       .bound = product_bound,
       .golden = {{"values", two(4), {{1, -2, 0.5, 3}, {0.5, 0.25, 1, 0.125}}, {{0.25, -0.375, 0, 0.328125}}}}},
      {.op = TENON_OP_Tanh,
       .variants = of_every_shape({.low = -4, .high = 4, .special = Special::all}),
       .bound = tanh_bound,
       .gradient = {0},
       .gradient_ops = {TENON_OP_TanhGrad},
       .golden = {values_at("values", {0, 0.5, -0.5, 0.0009765625, 2, -20, inf, -inf},
                            {0, 0.46211715726000974, -0.46211715726000974, 0.0009765621895592603, 0.9640275800758169, -1, 1, -1})},
       .extras = {at_all_magnitudes<TENON_OP_Tanh, tanh_bound>()}},
      {.op = TENON_OP_TanhGrad,
       .variants = of_dy_and_y({.low = -1, .high = 1}),
       .bound = tanh_grad_bound,
       .golden = {{"values", two(4), {{1, -2, 0.5, 3}, {0.5, 0.25, 1, -0.125}}, {{0.75, -1.875, 0, 2.953125}}}}},
  };
}

}  // namespace tenon::conformance
