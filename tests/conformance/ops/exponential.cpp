// SPDX-License-Identifier: Apache-2.0
// Exp, Expm1, Log, Log2, Log1p, Erf. Golden values: mpmath with 300 bits.
#include "elementwise.h"

namespace tenon::conformance {
namespace {

constexpr Values moderate{.low = -4, .high = 4, .special = Special::all};
constexpr Values positive{.low = 0.25, .high = 8, .special = Special::all};

template <tenon_op op>
OpCase function(const Values& x, std::vector<Golden> golden) {
  return {.op = op,
          .variants = of_every_shape(x),
          .bound = four_ulp,
          .gradient = {0},
          .golden = std::move(golden),
          .extras = {at_all_magnitudes<op, four_ulp>()}};
}

}  // namespace

std::vector<OpCase> cases_exponential() {
  return {
      function<TENON_OP_Exp>(moderate, {values_at("values", {0, 1, -1, 4.5, -8, 10.5, inf, -inf, nan},
                                                  {1, 2.718281828459045, 0.36787944117144233, 90.01713130052181, 0.00033546262790251185,
                                                   36315.502674246636, inf, 0, nan}),
                                        values_at("far_out", {9984, -9984}, {inf, 0})}),
      function<TENON_OP_Expm1>(moderate, {values_at("values", {0, 1, -1, 4.5, -8, 0.0009765625, -0.0009765625, inf, -inf, nan},
                                                    {0, 1.7182818284590453, -0.6321205588285577, 89.01713130052181, -0.9996645373720975,
                                                     0.0009770394924165351, -0.0009760858180243377, inf, -1, nan})}),
      function<TENON_OP_Log>(
          positive, {values_at("values", {1, 2, 0.5, 10.5, 1.0078125, 0.9921875, 1024, 0.0009765625, inf, 0, -0.0, -1, -inf, nan},
                               {0, 0.6931471805599453, -0.6931471805599453, 2.3513752571634776, 0.007782140442054949, -0.007843177461025893,
                                6.931471805599453, -6.931471805599453, inf, -inf, -inf, nan, nan, nan})}),
      function<TENON_OP_Log2>(
          positive,
          {values_at("values", {1, 2, 0.5, 10.5, 1.0078125, 0.9921875, 1024, 0.0009765625, inf, 0, -0.0, -1, -inf, nan},
                     {0, 1, -1, 3.3923174227787602, 0.01122725542325412, -0.011315313227834146, 10, -10, inf, -inf, -inf, nan, nan, nan})}),
      function<TENON_OP_Log1p>({.low = -0.9, .high = 8, .special = Special::all},
                               {values_at("values", {0, 1, -0.5, 10.5, 0.0009765625, -0.0009765625, -0.9921875, inf, -1, -2, nan},
                                          {0, 0.6931471805599453, -0.6931471805599453, 2.4423470353692043, 0.0009760859730554589,
                                           -0.0009770396478266127, -4.852030263919617, inf, -inf, nan, nan})}),
      function<TENON_OP_Erf>(moderate, {values_at("values", {0, 0.5, -0.5, 1, 2, -3.5, 0.0009765625, inf, -inf, nan},
                                                  {0, 0.5204998778130465, -0.5204998778130465, 0.8427007929497149, 0.9953222650189527,
                                                   -0.9999992569016276, 0.0011019324300718147, 1, -1, nan})}),
  };
}

}  // namespace tenon::conformance
