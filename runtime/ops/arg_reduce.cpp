// SPDX-License-Identifier: Apache-2.0
// ops/arg_reduce.cpp - index of the largest or smallest value along an axis.
#include <fmt/format.h>

#include <tenon/functions.h>

#include "graph/op.h"
#include "ops/axis_attributes.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_number(0);
  auto attributes = at.attributes.as<tenon_attributes_axis>();
  at.expect_flag(attributes.keepdims, "keepdims");
  attributes.axis = at.axis(attributes.axis, 0);
  at.attributes = Attributes::of(attributes);
  Shape y;
  for (std::size_t i = 0; i < at.shape(0).rank(); ++i) {
    if (static_cast<std::int64_t>(i) != attributes.axis)
      y.push_back(at.shape(0)[i]);
    else if (attributes.keepdims)
      y.push_back(1);
  }
  if (at.shape(0)[static_cast<std::size_t>(attributes.axis)] == 0 && y.count() != 0) {
    at.fail(fmt::format("axis {} of {} has no elements to choose from", attributes.axis, at.str(0)));
  }
  at.output(DType::i64, y);
}

}  // namespace

extern const OpRules rules_arg_max, rules_arg_min;
const OpRules rules_arg_max{"y = index of the largest x along axis, as i64. Ties: the first; NaN counts as the largest.", infer,
                            PrecisionClass::fp32, per_element<1>};
const OpRules rules_arg_min{"y = index of the smallest x along axis, as i64. Ties: the first; NaN counts as the smallest.", infer,
                            PrecisionClass::fp32, per_element<1>};

}  // namespace graph

namespace ops {
namespace {

Value arg_reduce(tenon_op op, Value x, std::int64_t axis, bool keepdims) {
  return graph::apply_op(op, {x}, graph::axis_attributes(axis, keepdims));
}

}  // namespace

Value arg_max(Value x, std::int64_t axis, bool keepdims) {
  return arg_reduce(TENON_OP_ArgMax, x, axis, keepdims);
}
Value arg_min(Value x, std::int64_t axis, bool keepdims) {
  return arg_reduce(TENON_OP_ArgMin, x, axis, keepdims);
}

}  // namespace ops
}  // namespace tenon
