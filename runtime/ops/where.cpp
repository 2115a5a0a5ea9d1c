// SPDX-License-Identifier: Apache-2.0
// ops/where.cpp - elementwise selection.
#include <fmt/format.h>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(3, 3);
  if (at.dtype(0) != DType::boolean) at.fail(fmt::format("expected a condition of bool, got {}; use a comparison", at.str(0)));
  at.expect_same_dtype(1, 2);
  at.broadcast(0, 2);  // check each pair, so that an error names the two that do not broadcast
  at.broadcast(1, 2);
  at.output(at.dtype(1), tenon::broadcast(at.broadcast(0, 1), at.shape(2)));
}

/// dy goes to the operand that was chosen; the other one gets 0.
void gradient(Gradient& at) {
  const Value condition = at.input(0), dy = at.dy();
  const Value zero = scalar(at.graph, dy.dtype(), 0);
  if (at.needs(1)) at.set(1, unbroadcast(ops::where(condition, dy, zero), at.input(1).shape()));
  if (at.needs(2)) at.set(2, unbroadcast(ops::where(condition, zero, dy), at.input(2).shape()));
}

}  // namespace

extern const OpRules rules_where;
const OpRules rules_where{"y = a where the condition holds, else b; shapes broadcast.", infer, PrecisionClass::inherits, per_element<0>,
                          gradient};

}  // namespace graph

namespace ops {

Value where(Value condition, Value a, Value b) {
  return graph::apply_op(TENON_OP_Where, {condition, a, b});
}

}  // namespace ops
}  // namespace tenon
