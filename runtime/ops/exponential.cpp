// SPDX-License-Identifier: Apache-2.0
// ops/exponential.cpp - elementwise exponentials, logarithms and the error function.
#include <cmath>

#include <tenon/functions.h>

#include "ops/pointwise.h"

namespace tenon::graph {
namespace {

void exp_gradient(Gradient& at) {
  at.set(0, ops::mul(at.dy(), at.output(0)));
}

/// dy e^x; y + 1 would cancel the digits of a small e^x.
void expm1_gradient(Gradient& at) {
  at.set(0, ops::mul(at.dy(), ops::exp(at.input(0))));
}

void log_gradient(Gradient& at) {
  at.set(0, ops::div(at.dy(), at.input(0)));
}

void log2_gradient(Gradient& at) {
  at.set(0, ops::div(ops::mul(at.dy(), 1 / std::log(2.0)), at.input(0)));
}

void log1p_gradient(Gradient& at) {
  at.set(0, ops::div(at.dy(), ops::add(at.input(0), 1)));
}

/// 2 / sqrt(pi) dy e^(-x^2)
void erf_gradient(Gradient& at) {
  const Value x = at.input(0);
  at.set(0, ops::mul(ops::mul(at.dy(), 2 / std::sqrt(std::acos(-1.0))), ops::exp(ops::neg(ops::square(x)))));
}

}  // namespace

extern const OpRules rules_exp, rules_expm1, rules_log, rules_log2, rules_log1p, rules_erf;
const OpRules rules_exp{"y = e^x.", infer_floating, PrecisionClass::fp32, per_element<1>, exp_gradient};
const OpRules rules_expm1{"y = e^x - 1, accurate for small x.", infer_floating, PrecisionClass::fp32, per_element<1>, expm1_gradient};
const OpRules rules_log{"y = the natural logarithm of x; -inf at 0, NaN below.", infer_floating, PrecisionClass::fp32, per_element<1>,
                        log_gradient};
const OpRules rules_log2{"y = the logarithm of x to base 2; -inf at 0, NaN below.", infer_floating, PrecisionClass::fp32, per_element<1>,
                         log2_gradient};
const OpRules rules_log1p{"y = log(1 + x), accurate for small x; -inf at -1, NaN below.", infer_floating, PrecisionClass::fp32,
                          per_element<1>, log1p_gradient};
const OpRules rules_erf{"y = 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.", infer_floating, PrecisionClass::fp32,
                        per_element<1>, erf_gradient};

}  // namespace tenon::graph
