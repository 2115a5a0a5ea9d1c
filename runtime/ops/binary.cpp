// SPDX-License-Identifier: Apache-2.0
// ops/binary.cpp - elementwise binary ops with NumPy broadcasting.
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon::graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(2, 2);
  at.expect_same_dtype(0, 1);
  at.expect_number(0);
  at.output(at.dtype(0), at.broadcast(0, 1));
}

/// Sets operand i's gradient from a gradient in the shape of the result.
void set(Gradient& at, std::size_t i, Value gradient) {
  at.set(i, unbroadcast(gradient, at.input(i).shape()));
}

void add_gradient(Gradient& at) {
  for (std::size_t i : {0u, 1u}) {
    if (at.needs(i)) set(at, i, at.dy());
  }
}

void sub_gradient(Gradient& at) {
  if (at.needs(0)) set(at, 0, at.dy());
  // negated after the sum: fewer elements
  if (at.needs(1)) at.set(1, ops::neg(unbroadcast(at.dy(), at.input(1).shape())));
}

void mul_gradient(Gradient& at) {
  if (at.needs(0)) set(at, 0, ops::mul(at.dy(), at.input(1)));
  if (at.needs(1)) set(at, 1, ops::mul(at.dy(), at.input(0)));
}

/// d(a/b) = da / b - y db / b
void div_gradient(Gradient& at) {
  const Value scaled = ops::div(at.dy(), at.input(1));
  if (at.needs(0)) set(at, 0, scaled);
  if (at.needs(1)) at.set(1, ops::neg(unbroadcast(ops::mul(scaled, at.output(0)), at.input(1).shape())));
}

/// y = a^b: da = dy b a^(b-1), db = dy y log a. A factor that is infinite where the other one is exactly 0 (b = 0; a = 0 with a positive b)
/// is masked out.
void pow_gradient(Gradient& at) {
  const Value a = at.input(0), b = at.input(1), dy = at.dy();
  const auto constant = [&](double value) { return scalar(at.graph, a.dtype(), value); };
  if (at.needs(0)) {
    const Value slope = ops::mul(b, ops::pow(a, ops::sub(b, 1)));
    set(at, 0, ops::where(ops::equal(b, constant(0)), constant(0), ops::mul(dy, slope)));
  }
  if (at.needs(1)) {
    const Value no_logarithm = ops::logical_and(ops::equal(a, constant(0)), ops::greater_equal(b, constant(0)));
    set(at, 1, ops::where(no_logarithm, constant(0), ops::mul(dy, ops::mul(at.output(0), ops::log(a)))));
  }
}

/// dy goes to the chosen operand; to each operand half of it if they are equal, all of it if one is NaN.
void set_chosen(Gradient& at, std::size_t i, Value not_chosen) {
  const auto constant = [&](double value) { return scalar(at.graph, at.dy().dtype(), value); };
  const Value shared = ops::where(ops::equal(at.input(0), at.input(1)), ops::mul(at.dy(), 0.5), at.dy());
  set(at, i, ops::where(not_chosen, constant(0), shared));
}

void maximum_gradient(Gradient& at) {
  if (at.needs(0)) set_chosen(at, 0, ops::less(at.input(0), at.input(1)));
  if (at.needs(1)) set_chosen(at, 1, ops::less(at.input(1), at.input(0)));
}

void minimum_gradient(Gradient& at) {
  if (at.needs(0)) set_chosen(at, 0, ops::greater(at.input(0), at.input(1)));
  if (at.needs(1)) set_chosen(at, 1, ops::greater(at.input(1), at.input(0)));
}

void infer_floating(Inference& at) {
  at.expect_inputs(2, 2);
  at.expect_floating(0);
  infer(at);
}

}  // namespace

extern const OpRules rules_add, rules_sub, rules_mul, rules_div, rules_pow, rules_maximum, rules_minimum;
const OpRules rules_add{"y = a + b, shapes broadcast. Integers wrap.", infer, PrecisionClass::inherits, per_element<1>, add_gradient};
const OpRules rules_sub{"y = a - b, shapes broadcast. Integers wrap.", infer, PrecisionClass::inherits, per_element<1>, sub_gradient};
const OpRules rules_mul{"y = a * b, shapes broadcast. Integers wrap.", infer, PrecisionClass::inherits, per_element<1>, mul_gradient};
const OpRules rules_div{
    "y = a / b, shapes broadcast. Floats divide by zero as in IEEE 754; integers truncate, and division by zero is an "
    "error at execution.",
    infer, PrecisionClass::fp32, per_element<1>, div_gradient};
const OpRules rules_pow{"y = a^b as IEEE 754's pow, shapes broadcast. A negative a gives NaN unless b is an integer.", infer_floating,
                        PrecisionClass::fp32, per_element<1>, pow_gradient};
const OpRules rules_maximum{"y = the larger of a and b, shapes broadcast. NaN propagates; equal operands share the gradient.", infer,
                            PrecisionClass::inherits, per_element<1>, maximum_gradient};
const OpRules rules_minimum{"y = the smaller of a and b, shapes broadcast. NaN propagates; equal operands share the gradient.", infer,
                            PrecisionClass::inherits, per_element<1>, minimum_gradient};

}  // namespace tenon::graph
