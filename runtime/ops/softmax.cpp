// SPDX-License-Identifier: Apache-2.0
// ops/softmax.cpp - softmax and its logarithm along an axis.
#include <tenon/functions.h>

#include "graph/op.h"
#include "ops/axis_attributes.h"

namespace tenon {
namespace graph {
namespace {

void normalise_axis(Inference& at) {
  auto attributes = at.attributes.as<tenon_attributes_axis>();
  attributes.axis = at.axis(attributes.axis, 0);
  attributes.keepdims = 0;
  at.attributes = Attributes::of(attributes);
}

void infer(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_floating(0);
  normalise_axis(at);
  at.output(at.dtype(0), at.shape(0));
}

/// dy, y -> dx
void infer_gradient(Inference& at) {
  at.expect_inputs(2, 2);
  at.expect_same_dtype(0, 1);
  at.expect_floating(0);
  at.expect_same_shape(0, 1);
  normalise_axis(at);
  at.output(at.dtype(0), at.shape(0));
}

template <tenon_op op>
void gradient(Gradient& at) {
  at.set(0, apply_op(op, {at.dy(), at.output(0)}, at.attributes));
}

}  // namespace

extern const OpRules rules_softmax, rules_softmax_grad, rules_log_softmax, rules_log_softmax_grad;
const OpRules rules_softmax{"y = exp(x - max x) / sum exp(x - max x), along axis.", infer, PrecisionClass::fp32, per_element<4>,
                            gradient<TENON_OP_SoftmaxGrad>};
const OpRules rules_softmax_grad{"dx = y (dy - sum(dy y)), sums along axis.", infer_gradient, PrecisionClass::fp32, per_element<4>};
const OpRules rules_log_softmax{"y = x - max x - log sum exp(x - max x), along axis.", infer, PrecisionClass::fp32, per_element<4>,
                                gradient<TENON_OP_LogSoftmaxGrad>};
const OpRules rules_log_softmax_grad{"dx = dy - exp(y) sum(dy), sums along axis.", infer_gradient, PrecisionClass::fp32, per_element<4>};

}  // namespace graph

namespace ops {

Value softmax(Value x, std::int64_t axis) {
  return graph::apply_op(TENON_OP_Softmax, {x}, graph::axis_attributes(axis));
}
Value log_softmax(Value x, std::int64_t axis) {
  return graph::apply_op(TENON_OP_LogSoftmax, {x}, graph::axis_attributes(axis));
}

}  // namespace ops
}  // namespace tenon
