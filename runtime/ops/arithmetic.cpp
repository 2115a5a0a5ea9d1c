// SPDX-License-Identifier: Apache-2.0
// ops/arithmetic.cpp - elementwise abs, sign, rounding, roots, reciprocal and clip.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include <tenon/functions.h>

#include "ops/pointwise.h"

namespace tenon {
namespace graph {
namespace {

void infer_clip(Inference& at) {
  infer_number(at);
  const auto& bounds = at.attributes.as<tenon_attributes_clip>();
  if (std::isnan(bounds.low) || std::isnan(bounds.high))
    at.fail(fmt::format("expected bounds other than NaN, got low={} high={}; use -inf and inf for no bound", bounds.low, bounds.high));
}

/// Step functions: the derivative is 0 wherever it is defined.
void flat(Gradient&) {}

void abs_gradient(Gradient& at) {
  at.set(0, ops::mul(at.dy(), ops::sign(at.input(0))));
}

/// dy / (2 y)
void sqrt_gradient(Gradient& at) {
  at.set(0, ops::div(ops::mul(at.dy(), 0.5), at.output(0)));
}

/// -dy y / (2 x), since y^3 could overflow where the result does not.
void rsqrt_gradient(Gradient& at) {
  at.set(0, ops::div(ops::mul(ops::mul(at.dy(), -0.5), at.output(0)), at.input(0)));
}

/// -dy y^2
void reciprocal_gradient(Gradient& at) {
  at.set(0, ops::neg(ops::mul(ops::mul(at.dy(), at.output(0)), at.output(0))));
}

void clip_gradient(Gradient& at) {
  const auto bounds = at.attributes.as<tenon_attributes_clip>();
  const Value x = at.input(0);
  const auto constant = [&](double value) { return scalar(at.graph, x.dtype(), value); };
  Value gradient = at.dy();
  if (bounds.low > -std::numeric_limits<double>::infinity())
    gradient = ops::where(ops::less(x, constant(bounds.low)), constant(0), gradient);
  if (bounds.high < std::numeric_limits<double>::infinity())
    gradient = ops::where(ops::greater(x, constant(bounds.high)), constant(0), gradient);
  at.set(0, gradient);
}

}  // namespace

extern const OpRules rules_abs, rules_sign, rules_ceil, rules_floor, rules_round, rules_sqrt, rules_rsqrt, rules_reciprocal, rules_clip;
const OpRules rules_abs{"y = |x|. The lowest integer wraps to itself; the derivative at 0 is 0.", infer_number, PrecisionClass::inherits,
                        per_element<1>, abs_gradient};
const OpRules rules_sign{"y = -1, 0 or 1 for a negative, zero or positive x. NaN propagates; the derivative is 0.", infer_number,
                         PrecisionClass::inherits, per_element<1>, flat};
const OpRules rules_ceil{"y = the smallest integer not below x. The derivative is 0.", infer_floating, PrecisionClass::fp32, per_element<1>,
                         flat};
const OpRules rules_floor{"y = the largest integer not above x. The derivative is 0.", infer_floating, PrecisionClass::fp32, per_element<1>,
                          flat};
const OpRules rules_round{"y = the nearest integer, ties to even. The derivative is 0.", infer_floating, PrecisionClass::fp32,
                          per_element<1>, flat};
const OpRules rules_sqrt{"y = the square root of x; NaN below 0.", infer_floating, PrecisionClass::fp32, per_element<1>, sqrt_gradient};
const OpRules rules_rsqrt{"y = 1 / sqrt(x); infinite at 0, NaN below.", infer_floating, PrecisionClass::fp32, per_element<1>,
                          rsqrt_gradient};
const OpRules rules_reciprocal{"y = 1 / x.", infer_floating, PrecisionClass::fp32, per_element<1>, reciprocal_gradient};
const OpRules rules_clip{
    "y = min(max(x, low), high). NaN propagates; low above high gives high. The derivative is 1 in [low, high], the ends included, and 0 "
    "outside.",
    infer_clip, PrecisionClass::inherits, per_element<1>, clip_gradient};

}  // namespace graph

namespace ops {

Value clip(Value x, double low, double high) {
  tenon_attributes_clip attributes{};
  attributes.low = low;
  attributes.high = high;
  return graph::apply_op(TENON_OP_Clip, {x}, Attributes::of(attributes));
}
Value square(Value x) {
  return mul(x, x);
}
Value cube(Value x) {
  return mul(mul(x, x), x);
}

}  // namespace ops
}  // namespace tenon
