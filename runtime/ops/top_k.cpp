// SPDX-License-Identifier: Apache-2.0
// ops/top_k.cpp - the largest or smallest elements along an axis.
#include <fmt/format.h>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_number(0);
  auto attributes = at.attributes.as<tenon_attributes_top_k>();
  at.expect_flag(attributes.largest, "largest");
  at.expect_flag(attributes.sorted, "sorted");
  attributes.axis = at.axis(attributes.axis, 0);
  Shape y = at.shape(0);
  const auto axis = static_cast<std::size_t>(attributes.axis);
  if (attributes.k < 0 || attributes.k > y[axis]) {
    at.fail(fmt::format("expected 0 to {} elements along axis {} of {}, got k = {}", y[axis], axis, at.str(0), attributes.k));
  }
  y.set(axis, attributes.k);
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), y);
  at.output(DType::i64, y);
}

/// Adds the gradient of each value to its element; indices are distinct.
void gradient(Gradient& at) {
  const Value x = at.input(0);
  at.set(0, ops::scatter_elements(ops::expand(scalar(at.graph, x.dtype(), 0), x.shape()), at.output(1), at.dy(),
                                  at.attributes.as<tenon_attributes_top_k>().axis));
}

}  // namespace

extern const OpRules rules_top_k;
const OpRules rules_top_k{
    "The k largest (or smallest) elements of each line along axis, and their indices; sorted: best first. Equal elements: the smaller "
    "index first. NaN is larger than every number.",
    infer, PrecisionClass::fp32, per_element<1>, gradient};

}  // namespace graph

namespace ops {

std::pair<Value, Value> top_k(Value x, std::int64_t k, std::int64_t axis, bool largest) {
  tenon_attributes_top_k attributes{};
  attributes.largest = largest ? 1 : 0;
  attributes.sorted = 1;
  attributes.axis = axis;
  attributes.k = k;
  const std::vector<Value> results = x.graph().apply(TENON_OP_TopK, {x}, Attributes::of(attributes));
  return {results[0], results[1]};
}

}  // namespace ops
}  // namespace tenon
