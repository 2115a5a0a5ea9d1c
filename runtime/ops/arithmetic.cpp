// ops/arithmetic.cpp - magnitude, sign, whole numbers, roots, reciprocal and bounds, element by element.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer_number(Inference& at) {
  at.want_inputs(1, 1);
  at.want_number(0);
  at.output(at.dtype(0), at.shape(0));
}

void infer_floating(Inference& at) {
  at.want_inputs(1, 1);
  at.want_floating(0);
  at.output(at.dtype(0), at.shape(0));
}

void infer_clip(Inference& at) {
  infer_number(at);
  const auto& bounds = at.attributes.as<tenon_attributes_clip>();
  if (std::isnan(bounds.low) || std::isnan(bounds.high))
    at.fail(fmt::format("wanted bounds that are numbers, got low={} high={}; -inf and inf are no bound", bounds.low, bounds.high));
}

/// Steps: the derivative is 0 wherever there is one.
void flat(Gradient&) {}

void abs_gradient(Gradient& at) {
  at.set(0, ops::mul(at.dy(), ops::sign(at.input(0))));
}

/// dy / (2 y)
void sqrt_gradient(Gradient& at) {
  at.set(0, ops::div(ops::mul(at.dy(), 0.5), at.output(0)));
}

/// -dy y / (2 x): y^3 would overflow where the result does not.
void inverse_sqrt_gradient(Gradient& at) {
  at.set(0, ops::div(ops::mul(ops::mul(at.dy(), -0.5), at.output(0)), at.input(0)));
}

/// -dy y^2
void inverse_gradient(Gradient& at) {
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

extern const OpRules rules_abs, rules_sign, rules_ceil, rules_floor, rules_round, rules_sqrt, rules_inverse_sqrt, rules_inverse, rules_clip;
const OpRules rules_abs{"y = |x|. The lowest integer wraps to itself; the derivative at 0 is 0.", infer_number, abs_gradient};
const OpRules rules_sign{"y = -1, 0 or 1 as x is negative, zero or positive. NaN stays; the derivative is 0.", infer_number, flat};
const OpRules rules_ceil{"y = the least whole number not below x. The derivative is 0.", infer_floating, flat};
const OpRules rules_floor{"y = the greatest whole number not above x. The derivative is 0.", infer_floating, flat};
const OpRules rules_round{"y = the nearest whole number, halves to even. The derivative is 0.", infer_floating, flat};
const OpRules rules_sqrt{"y = the square root of x; NaN below 0.", infer_floating, sqrt_gradient};
const OpRules rules_inverse_sqrt{"y = 1 / sqrt(x); infinite at 0, NaN below.", infer_floating, inverse_sqrt_gradient};
const OpRules rules_inverse{"y = 1 / x.", infer_floating, inverse_gradient};
const OpRules rules_clip{
    "y = min(max(x, low), high). NaN stays; low above high gives high. The derivative is 1 in [low, high], the ends included, and 0 "
    "outside.",
    infer_clip, clip_gradient};

}  // namespace graph

namespace ops {

Value abs(Value x) {
  return graph::apply_op(TENON_OP_Abs, {x});
}
Value sign(Value x) {
  return graph::apply_op(TENON_OP_Sign, {x});
}
Value ceil(Value x) {
  return graph::apply_op(TENON_OP_Ceil, {x});
}
Value floor(Value x) {
  return graph::apply_op(TENON_OP_Floor, {x});
}
Value round(Value x) {
  return graph::apply_op(TENON_OP_Round, {x});
}
Value sqrt(Value x) {
  return graph::apply_op(TENON_OP_Sqrt, {x});
}
Value inverse_sqrt(Value x) {
  return graph::apply_op(TENON_OP_Rsqrt, {x});
}
Value inverse(Value x) {
  return graph::apply_op(TENON_OP_Reciprocal, {x});
}
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
