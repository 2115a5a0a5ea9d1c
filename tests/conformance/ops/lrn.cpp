// SPDX-License-Identifier: Apache-2.0
// LRN and its gradient: windows over neighbouring channels.
#include "op_family.h"

namespace tenon::conformance {
namespace {

AttributeBytes over(std::int64_t size, double alpha, double beta, double bias) {
  return tenon_attributes_lrn{.size = size, .alpha = alpha, .beta = beta, .bias = bias};
}

Variant forward(const Dims& shape, std::int64_t size, double alpha = 0.5, double beta = 0.75, double bias = 2) {
  return {fmt::format("size={},beta={}", size, beta),
          {operand(shape, {.special = Special::not_large})},
          {result(shape)},
          over(size, alpha, beta, bias)};
}
Variant backward(const Dims& shape, std::int64_t size, double alpha = 0.5, double beta = 0.75, double bias = 2) {
  return {fmt::format("size={},beta={}", size, beta),
          {operand(shape, {.special = Special::not_large}), operand(shape)},
          {result(shape)},
          over(size, alpha, beta, bias)};
}

/// Windows smaller and larger than the number of channels, odd and even; powers with and without a special formula; pixels adjacent in
/// memory and not.
template <class Make>
std::vector<Variant> variants(Make make) {
  return {make({2, 5}, 3, 0.5, 0.75, 2),
          make({2, 5, 3}, 1, 0.5, 0.75, 1),
          make({2, 7, 3, 2}, 4, 1, 0.5, 1),
          make({2, 19, 2, 3}, 5, 1e-4, 0.75, 1),
          make({1, 4, 3}, 9, 2, 1.25, 0.5),
          make({1, 3, 2}, 1000000000000, 2e11, 0.75, 0.5),
          make({1, 2, 2, 2, 3}, 2, 1, 0.75, 1),
          make({sized(300, 30), 40}, 5, 0.5, 0.75, 2),
          make({3, 64, 6, sized(11, 2)}, 5, 0.5, 0.6, 2),
          make({0, 3, 2}, 3, 1, 0.75, 1),
          make({2, 0, 2}, 3, 1, 0.75, 1)};
}

double channels_in_window(const Variant& variant) {
  const auto& by = variant.attributes.as<tenon_attributes_lrn>();
  return static_cast<double>(std::min(by.size, variant.inputs[0].shape[1]));
}
constexpr Tolerance forward_bound{"Squares add up without cancelling, each rounds; a power takes 8 epsilon or so.",
                                  [](const Variant& variant, tenon_dtype t) -> Bound {
                                    return {(12 + channels_in_window(variant)) * epsilon(t), smallest_normal(t)};
                                  }};
constexpr Tolerance backward_bound{
    "Two terms as of the forward pass, the second a sum over the window of terms up to 8 (|dy|, |x| <= 2, base >= "
    "1/2), times up to 10.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      return {(12 + channels_in_window(variant)) * epsilon(t), 128 * channels_in_window(variant) * epsilon(t)};
    }};

}  // namespace

std::vector<OpCase> cases_lrn() {
  const std::vector<double> x{1.0, -2.0, 0.5, 3.0, -1.0, 2.0, 0.25, -0.5, 1.5, 4.0};
  return {
      // PyTorch 1.13 in f64; the even window, which PyTorch places differently, by the formula in NumPy
      {.op = TENON_OP_LRN,
       .variants = variants([](const Dims& shape, std::int64_t size, double alpha, double beta, double bias) {
         return forward(shape, size, alpha, beta, bias);
       }),
       .bound = forward_bound,
       .gradient = {0},
       .gradient_ops = {TENON_OP_LRNGrad},
       .golden = {{"pytorch",
                   forward({2, 5, 1}, 3),
                   {x},
                   {{0.45790643500456496, -0.9058402390052931, 0.17017172658231416, 1.1226313890128787, -0.37739524779024686,
                     0.955616363853514, 0.11807638623094435, -0.2571322134539644, 0.44307762317132293, 1.1888563857668315}}},
                  {"even_window_reaches_further_ahead",
                   forward({2, 5, 1}, 4, 0.5, 0.5, 1),
                   {x},
                   {{0.7770286898858113, -1.1992507023933783, 0.29981267559834457, 1.986254132645683, -0.6666666666666666,
                     1.6121367099516108, 0.18529642184483178, -0.27439773622801417, 0.8241633836921343, 2.2082097898955335}}}}},
      {.op = TENON_OP_LRNGrad,
       .variants = variants([](const Dims& shape, std::int64_t size, double alpha, double beta, double bias) {
         return backward(shape, size, alpha, beta, bias);
       }),
       .bound = backward_bound,
       .golden = {{"pytorch",
                   backward({2, 5, 1}, 3),
                   {{0.5, -1, 2, 1, 0.25, -0.5, 1, 1, -2, 0.75}, x},
                   {{0.12998274658154407, -0.21454233174061987, 0.5933518291366817, 0.10580476978020886, 0.16359895339531477,
                     -0.17137884978333945, 0.4873676304606548, 0.4846596627172064, -0.5519899744143366, 0.22038152560557175}}}}},
  };
}

}  // namespace tenon::conformance
