// SPDX-License-Identifier: Apache-2.0
// Sin and Cos, of small and of very large arguments, and Atan. Golden values: mpmath with 300 bits (and more for the large ones).
#include "elementwise.h"

namespace tenon::conformance {
namespace {

constexpr Tolerance four_ulp_near_zeros{"4 ulp at most, near the zeros too: an ulp is half an epsilon of the largest numbers that have it.",
                                        2};

/// Enough small arguments to fill registers, then a large one: both range reductions have to agree.
std::vector<Variant> variants() {
  std::vector<Variant> list = of_every_shape({.low = -10, .high = 10, .special = Special::all});
  // Also with reduced sizes, too many for finite differences, which lose their digits at 60000.
  list.push_back(of_shape({sized(20001, 5003)}, {.low = -60000, .high = 60000}));
  return list;
}

}  // namespace

std::vector<OpCase> cases_trigonometric() {
  const std::vector<double> moderate{0, 1, -1, 3.140625, 1.5703125, 100, 65280, inf, -inf, nan};
  const std::vector<double> large{0x1p30, 0x1p100}, enormous{1e22, 0x1p1000};
  return {
      {.op = TENON_OP_Sin,
       .variants = variants(),
       .bound = four_ulp_near_zeros,
       .gradient = {0},
       .gradient_ops = {TENON_OP_Cos},
       .golden = {values_at("values", moderate,
                            {0, 0.8414709848078965, -0.8414709848078965, 0.0009676534387822795, 0.9999998829558185, -0.5063656411097588,
                             -0.7488008927393123, nan, nan, nan}),
                  values_at("large", large, {-0.6173264150460421, -0.8721836054182673}, {bf16, f32, f64}),
                  values_at("enormous", enormous, {-0.8522008497671888, -0.15920170308624243}, {f64})},
       .extras = {at_all_magnitudes<TENON_OP_Sin, four_ulp_near_zeros>()}},
      {.op = TENON_OP_Cos,
       .variants = variants(),
       .bound = four_ulp_near_zeros,
       .gradient = {0},
       .gradient_ops = {TENON_OP_Sin},
       .golden = {values_at("values", moderate,
                            {1, 0.5403023058681398, 0.5403023058681398, -0.9999995318233016, 0.0004838267760202487, 0.8623188722876839,
                             -0.6627950083040827, nan, nan, nan}),
                  values_at("large", large, {0.7867071229411882, 0.48917865697472146}, {bf16, f32, f64}),
                  values_at("enormous", enormous, {0.523214785395139, 0.9872460775989135}, {f64})},
       .extras = {at_all_magnitudes<TENON_OP_Cos, four_ulp_near_zeros>()}},
      {.op = TENON_OP_Atan,
       .variants = of_every_shape({.low = -10, .high = 10, .special = Special::all}),
       .bound = four_ulp,
       .gradient = {0},
       .golden = {values_at(
           "values", {0, 0.5, 1, -1, 2.5, -8, 0.0009765625, 1.0078125, 0.9921875, 65280, inf, -inf, nan},
           {0, 0.4636476090008061, 0.7853981633974483, -0.7853981633974483, 1.1902899496825317, -1.446441332248135, 0.0009765621895593195,
            0.7892891943440928, 0.7814766148726883, 1.570781008167447, 1.5707963267948966, -1.5707963267948966, nan})},
       .extras = {at_all_magnitudes<TENON_OP_Atan, four_ulp>()}},
  };
}

}  // namespace tenon::conformance
