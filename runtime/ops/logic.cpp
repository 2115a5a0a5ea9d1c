// SPDX-License-Identifier: Apache-2.0
// ops/logic.cpp - and, or, xor and not of bool; is_nan and is_inf.
#include <fmt/format.h>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon::graph {
namespace {

void expect_bool(const Inference& at, std::size_t i) {
  if (at.dtype(i) != DType::boolean) at.fail(fmt::format("expected bool, got {}; use cast or a comparison", at.str(i)));
}

void infer_pair(Inference& at) {
  at.expect_inputs(2, 2);
  expect_bool(at, 0);
  expect_bool(at, 1);
  at.output(DType::boolean, at.broadcast(0, 1));
}

void infer_not(Inference& at) {
  at.expect_inputs(1, 1);
  expect_bool(at, 0);
  at.output(DType::boolean, at.shape(0));
}

void infer_kind(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_floating(0);
  at.output(DType::boolean, at.shape(0));
}

}  // namespace

extern const OpRules rules_logical_and, rules_logical_or, rules_logical_xor, rules_logical_not, rules_is_nan, rules_is_inf;
const OpRules rules_logical_and{"y = a and b, shapes broadcast.", infer_pair, PrecisionClass::fp32, per_element<1>};
const OpRules rules_logical_or{"y = a or b, shapes broadcast.", infer_pair, PrecisionClass::fp32, per_element<1>};
const OpRules rules_logical_xor{"y = a or b but not both, shapes broadcast.", infer_pair, PrecisionClass::fp32, per_element<1>};
const OpRules rules_logical_not{"y = not x.", infer_not, PrecisionClass::fp32, per_element<1>};
const OpRules rules_is_nan{"y = whether x is NaN.", infer_kind, PrecisionClass::fp32, per_element<1>};
const OpRules rules_is_inf{"y = whether x is infinite, of either sign.", infer_kind, PrecisionClass::fp32, per_element<1>};

}  // namespace tenon::graph
