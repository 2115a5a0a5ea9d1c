// SPDX-License-Identifier: Apache-2.0
// Softsign. The golden values are exact quotients.
#include "elementwise.h"

namespace tenon::conformance {
namespace {

constexpr Tolerance two_roundings{"A sum and a quotient, each rounded: half an epsilon each.", [](const Variant&, tenon_dtype t) -> Bound {
                                    return {epsilon(t), 0};
                                  }};

}  // namespace

std::vector<OpCase> cases_softsign() {
  return {
      {.op = TENON_OP_Softsign,
       .variants = of_every_shape({.low = -6, .high = 6, .gap = 0.05, .special = Special::all}),
       .bound = two_roundings,
       .gradient = {0},
       .golden = {values_at("values", {0, 1, -1, 3, -7, nan}, {0, 0.5, -0.5, 0.75, -0.875, nan})},
       .extras = {at_all_magnitudes<TENON_OP_Softsign, two_roundings>()}},
  };
}

}  // namespace tenon::conformance
