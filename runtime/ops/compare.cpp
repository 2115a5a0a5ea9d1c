// SPDX-License-Identifier: Apache-2.0
// ops/compare.cpp - elementwise comparisons with NumPy broadcasting.
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(2, 2);
  at.expect_same_dtype(0, 1);
  at.output(DType::boolean, at.broadcast(0, 1));
}

}  // namespace

extern const OpRules rules_equal, rules_less, rules_less_equal, rules_greater, rules_greater_equal;
const OpRules rules_equal{"y = (a == b) as bool, shapes broadcast. NaN equals nothing; -0 equals 0.", infer, PrecisionClass::fp32,
                          per_element<1>};
const OpRules rules_less{"y = (a < b) as bool, shapes broadcast. False if either is NaN; false is less than true.", infer,
                         PrecisionClass::fp32, per_element<1>};
const OpRules rules_less_equal{"y = (a <= b) as bool, shapes broadcast. False if either is NaN; false is less than true.", infer,
                               PrecisionClass::fp32, per_element<1>};
const OpRules rules_greater{"y = (a > b) as bool, shapes broadcast. False if either is NaN; true is greater than false.", infer,
                            PrecisionClass::fp32, per_element<1>};
const OpRules rules_greater_equal{"y = (a >= b) as bool, shapes broadcast. False if either is NaN; true is greater than false.", infer,
                                  PrecisionClass::fp32, per_element<1>};

}  // namespace graph

namespace ops {

Value not_equal(Value a, Value b) {
  return logical_not(equal(a, b));
}

}  // namespace ops
}  // namespace tenon
