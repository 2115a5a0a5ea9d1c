// SPDX-License-Identifier: Apache-2.0
// ops/cum_sum.cpp - cumulative sums along an axis.
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_number(0);
  auto attributes = at.attributes.as<tenon_attributes_cum_sum>();
  at.expect_flag(attributes.exclusive, "exclusive");
  at.expect_flag(attributes.reverse, "reverse");
  attributes.axis = at.axis(attributes.axis, 0);
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), at.shape(0));
}

/// An element is part of all later sums, so the gradient sums from the other end.
void gradient(Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_cum_sum>();
  at.set(0, ops::cum_sum(at.dy(), attributes.axis, attributes.exclusive != 0, attributes.reverse == 0));
}

}  // namespace

extern const OpRules rules_cum_sum;
const OpRules rules_cum_sum{"y[i] = x[0] + ... + x[i] along axis; exclusive: without x[i]; reverse: from the end to x[i].", infer,
                            PrecisionClass::fp32, per_element<1>, gradient};

}  // namespace graph

namespace ops {

Value cum_sum(Value x, std::int64_t axis, bool exclusive, bool reverse) {
  tenon_attributes_cum_sum attributes{};
  attributes.exclusive = exclusive ? 1 : 0;
  attributes.reverse = reverse ? 1 : 0;
  attributes.axis = axis;
  return graph::apply_op(TENON_OP_CumSum, {x}, Attributes::of(attributes));
}

}  // namespace ops
}  // namespace tenon
