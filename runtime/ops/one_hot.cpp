// SPDX-License-Identifier: Apache-2.0
// ops/one_hot.cpp - one-hot encoding.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "core/element.h"
#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(1, 1);
  if (at.dtype(0) != DType::i32 && at.dtype(0) != DType::i64) at.fail(fmt::format("expected indices of i32 or i64, got {}", at.str(0)));
  if (!at.options.shape) at.fail("the result's shape is not given (NodeOptions::shape)");
  auto attributes = at.attributes.as<tenon_attributes_one_hot>();
  const Shape &indices = at.shape(0), &y = *at.options.shape;
  const auto rank = static_cast<std::int64_t>(indices.rank()) + 1;
  if (attributes.axis < -rank || attributes.axis >= rank) {
    at.fail(fmt::format("axis {} is out of range for a result of rank {}", attributes.axis, rank));
  }
  if (attributes.axis < 0) attributes.axis += rank;
  const auto axis = static_cast<std::size_t>(attributes.axis);
  bool fits = y.rank() == indices.rank() + 1;
  for (std::size_t i = 0; fits && i < indices.rank(); ++i) fits = y[i < axis ? i : i + 1] == indices[i];
  if (!fits) at.fail(fmt::format("expected a result with one more dimension at axis {} than {}, got {}", axis, at.str(0), y.str()));
  const auto dtype = static_cast<DType>(attributes.dtype);
  unsigned char element[16];
  write_element(element, dtype, attributes.off, "one_hot: off");
  write_element(element, dtype, attributes.on, "one_hot: on");
  at.attributes = Attributes::of(attributes);
  at.output(dtype, y);
}

}  // namespace

extern const OpRules rules_one_hot;
const OpRules rules_one_hot{
    "y has one more dimension than indices, at axis: on where the index equals the position, else off. A negative index counts from the "
    "end; one outside [-depth, depth) gives only off.",
    infer, PrecisionClass::fp32, per_element<0>};

}  // namespace graph

namespace ops {

Value one_hot(Value indices, std::int64_t depth, DType dtype, double off, double on, std::int64_t axis) {
  const Shape shape = indices.shape();
  if (depth < 0) throw Error(fmt::format("one_hot: depth is {}, expected 0 or more", depth));
  if (shape.rank() == Shape::max_rank) {
    throw Error(fmt::format("one_hot: '{}' {} already has {} dimensions, the maximum", indices.name(), shape.str(), shape.rank()));
  }
  const auto i = static_cast<std::size_t>(resolve_axis(axis, shape.rank() + 1, "one_hot: the result"));
  Shape y;
  for (std::size_t d = 0; d <= shape.rank(); ++d) y.push_back(d == i ? depth : shape[d < i ? d : d - 1]);
  tenon_attributes_one_hot attributes{};
  attributes.dtype = static_cast<tenon_dtype>(dtype);
  attributes.axis = static_cast<std::int64_t>(i);
  attributes.off = off;
  attributes.on = on;
  return graph::apply_op(TENON_OP_OneHot, {indices}, Attributes::of(attributes), {.name = {}, .shape = y});
}

}  // namespace ops
}  // namespace tenon
