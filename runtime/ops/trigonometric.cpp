// SPDX-License-Identifier: Apache-2.0
// ops/trigonometric.cpp - elementwise sine, cosine and arc tangent.
#include <tenon/functions.h>

#include "ops/pointwise.h"

namespace tenon::graph {
namespace {

void sin_gradient(Gradient& at) {
  at.set(0, ops::mul(at.dy(), ops::cos(at.input(0))));
}

void cos_gradient(Gradient& at) {
  at.set(0, ops::neg(ops::mul(at.dy(), ops::sin(at.input(0)))));
}

void atan_gradient(Gradient& at) {
  at.set(0, ops::div(at.dy(), ops::add(ops::square(at.input(0)), 1)));
}

}  // namespace

extern const OpRules rules_sin, rules_cos, rules_atan;
const OpRules rules_sin{"y = sin x, x in radians and of any magnitude; NaN for infinite x.", infer_floating, PrecisionClass::fp32,
                        per_element<1>, sin_gradient};
const OpRules rules_cos{"y = cos x, x in radians and of any magnitude; NaN for infinite x.", infer_floating, PrecisionClass::fp32,
                        per_element<1>, cos_gradient};
const OpRules rules_atan{"y = the angle in [-pi/2, pi/2] whose tangent is x.", infer_floating, PrecisionClass::fp32, per_element<1>,
                         atan_gradient};

}  // namespace tenon::graph
