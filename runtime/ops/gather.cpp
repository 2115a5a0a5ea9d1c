// SPDX-License-Identifier: Apache-2.0
// ops/gather.cpp - elements selected by indices.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/op.h"
#include "ops/axis_attributes.h"

namespace tenon {
namespace graph {
namespace {

/// Checks operands 0 (x) and 1 (indices), resolves the axis and returns it.
std::size_t normalise_axis(Inference& at) {
  auto attributes = at.attributes.as<tenon_attributes_axis>();
  at.expect_flag(attributes.keepdims, "keepdims");
  if (at.dtype(1) != DType::i32 && at.dtype(1) != DType::i64) at.fail(fmt::format("expected indices of i32 or i64, got {}", at.str(1)));
  attributes.axis = at.axis(attributes.axis, 0);
  attributes.keepdims = 0;
  at.attributes = Attributes::of(attributes);
  return static_cast<std::size_t>(attributes.axis);
}

void infer_gather(Inference& at) {
  at.expect_inputs(2, 2);
  const std::size_t axis = normalise_axis(at);
  const Shape &x = at.shape(0), &indices = at.shape(1);
  if (x.rank() - 1 + indices.rank() > Shape::max_rank) {
    at.fail(fmt::format("expected a result of at most {1} dimensions, got {0}: {2}, {3}", x.rank() - 1 + indices.rank(), Shape::max_rank,
                        at.str(0), at.str(1)));
  }
  Shape y;
  for (std::size_t i = 0; i < axis; ++i) y.push_back(x[i]);
  for (const std::int64_t size : indices) y.push_back(size);
  for (std::size_t i = axis + 1; i < x.rank(); ++i) y.push_back(x[i]);
  at.output(at.dtype(0), y);
}

Value zeros_like(Gradient& at, Value x) {
  const Value zero = scalar(at.graph, x.dtype(), 0);
  return x.shape().rank() == 0 ? zero : ops::expand(zero, x.shape());
}

/// Adds dy to the slices that were read; equal indices are added in order.
void gather_gradient(Gradient& at) {
  if (at.needs(0)) {
    at.set(0, ops::scatter_add(zeros_like(at, at.input(0)), at.input(1), at.dy(), at.attributes.as<tenon_attributes_axis>().axis));
  }
}

void infer_gather_elements(Inference& at) {
  at.expect_inputs(2, 2);
  const std::size_t axis = normalise_axis(at);
  const Shape &x = at.shape(0), &indices = at.shape(1);
  bool fits = x.rank() == indices.rank();
  for (std::size_t i = 0; fits && i < x.rank(); ++i) fits = i == axis || indices[i] <= x[i];
  if (!fits)
    at.fail(fmt::format("expected indices of x's rank, no larger than x except along axis {}: {}, {}", axis, at.str(0), at.str(1)));
  at.output(at.dtype(0), indices);
}

void gather_elements_gradient(Gradient& at) {
  if (at.needs(0)) {
    at.set(0, ops::scatter_elements(zeros_like(at, at.input(0)), at.input(1), at.dy(), at.attributes.as<tenon_attributes_axis>().axis,
                                    ops::ScatterReduction::add));
  }
}

}  // namespace

extern const OpRules rules_gather, rules_gather_elements;
const OpRules rules_gather{
    "y = the slices of x along axis at indices, arranged in the shape of indices. Indices are in [-n, n), negative from the end; others "
    "are an error at execution.",
    infer_gather, PrecisionClass::inherits, per_element<0>, gather_gradient};
const OpRules rules_gather_elements{
    "y[i, j] = x[indices[i, j], j] for axis 0, and so on for others. Indices are in [-n, n), negative from the end; others are an error "
    "at execution.",
    infer_gather_elements, PrecisionClass::inherits, per_element<0>, gather_elements_gradient};

}  // namespace graph

namespace ops {

Value gather(Value x, Value indices, std::int64_t axis) {
  return graph::apply_op(TENON_OP_Gather, {x, indices}, graph::axis_attributes(axis));
}

Value gather_elements(Value x, Value indices, std::int64_t axis) {
  return graph::apply_op(TENON_OP_GatherElements, {x, indices}, graph::axis_attributes(axis));
}

Value embedding(Value weights, Value indices) {
  if (weights.shape().rank() != 2) {
    throw Error(fmt::format("embedding: expected weights of (rows, n), got '{}' {}", weights.name(), weights.shape().str()));
  }
  return gather(weights, indices, 0);
}

}  // namespace ops
}  // namespace tenon
