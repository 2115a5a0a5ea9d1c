// SPDX-License-Identifier: Apache-2.0
// ops/unary.cpp - elementwise unary ops. Their gradients are separate ops in terms of the result y.
#include <tenon/functions.h>

#include "ops/pointwise.h"

namespace tenon::graph {
namespace {

/// dy, y -> dx
void infer_gradient(Inference& at) {
  at.expect_inputs(2, 2);
  at.expect_same_dtype(0, 1);
  at.expect_floating(0);
  at.expect_same_shape(0, 1);
  at.output(at.dtype(0), at.shape(0));
}

void neg_gradient(Gradient& at) {
  at.set(0, ops::neg(at.dy()));
}

template <tenon_op op>
void gradient(Gradient& at) {
  at.set(0, apply_op(op, {at.dy(), at.output(0)}));
}

}  // namespace

extern const OpRules rules_neg, rules_relu, rules_relu_grad, rules_sigmoid, rules_sigmoid_grad, rules_tanh, rules_tanh_grad;
const OpRules rules_neg{"y = -x. The lowest integer wraps to itself.", infer_number, PrecisionClass::inherits, per_element<1>,
                        neg_gradient};
const OpRules rules_relu{"y = max(0, x). NaN propagates; the derivative at 0 is 0.", infer_number, PrecisionClass::inherits, per_element<1>,
                         gradient<TENON_OP_ReluGrad>};
const OpRules rules_relu_grad{"dx = dy where y > 0, else 0.", infer_gradient, PrecisionClass::inherits, per_element<1>};
const OpRules rules_sigmoid{"y = 1 / (1 + exp(-x)).", infer_floating, PrecisionClass::inherits, per_element<1>,
                            gradient<TENON_OP_SigmoidGrad>};
const OpRules rules_sigmoid_grad{"dx = dy y (1 - y).", infer_gradient, PrecisionClass::inherits, per_element<1>};
const OpRules rules_tanh{"y = tanh(x).", infer_floating, PrecisionClass::inherits, per_element<1>, gradient<TENON_OP_TanhGrad>};
const OpRules rules_tanh_grad{"dx = dy (1 - y^2).", infer_gradient, PrecisionClass::inherits, per_element<1>};

}  // namespace tenon::graph
