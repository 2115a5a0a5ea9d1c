// SPDX-License-Identifier: Apache-2.0
// ops/scatter.cpp - changes the elements of a tensor that are selected by indices.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <numeric>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void expect_indices(const Inference& at) {
  if (at.dtype(1) != DType::i32 && at.dtype(1) != DType::i64) at.fail(fmt::format("expected indices of i32 or i64, got {}", at.str(1)));
}

void infer_scatter_elements(Inference& at) {
  at.expect_inputs(3, 3);
  expect_indices(at);
  at.expect_same_dtype(0, 2);
  auto attributes = at.attributes.as<tenon_attributes_scatter>();
  if (attributes.reduction > TENON_SCATTER_MUL)
    at.fail(fmt::format("reduction is {}, expected none (0), add (1) or mul (2)", attributes.reduction));
  attributes.axis = at.axis(attributes.axis, 0);
  at.attributes = Attributes::of(attributes);
  const Shape &x = at.shape(0), &indices = at.shape(1);
  if (indices != at.shape(2)) at.fail(fmt::format("expected an update for each index: {}, {}", at.str(1), at.str(2)));
  bool fits = x.rank() == indices.rank();
  for (std::size_t i = 0; fits && i < x.rank(); ++i) fits = static_cast<std::int64_t>(i) == attributes.axis || indices[i] <= x[i];
  if (!fits) {
    at.fail(
        fmt::format("expected indices of x's rank, no larger than x except along axis {}: {}, {}", attributes.axis, at.str(0), at.str(1)));
  }
  at.output(at.dtype(0), x);
}

Value constant_like(Gradient& at, Value shape_of, double value) {
  const Value element = scalar(at.graph, at.input(0).dtype(), value);
  return shape_of.shape().rank() == 0 ? element : ops::expand(element, shape_of.shape());
}

/// For each update: whether it is the last one for its index.
Value stayed(Gradient& at, std::int64_t axis) {
  const Value indices = at.input(1);
  std::vector<std::int64_t> count(static_cast<std::size_t>(indices.shape().count()));
  std::iota(count.begin(), count.end(), 0);
  const Value position = at.graph.constant(Tensor::of(count, indices.shape()));
  const Value nothing = ops::expand(scalar(at.graph, DType::i64, 0), at.input(0).shape());
  return ops::equal(ops::gather_elements(ops::scatter_elements(nothing, indices, position, axis), indices, axis), position);
}

void replace_gradient(Gradient& at, std::int64_t axis) {
  const Value zero = scalar(at.graph, at.input(0).dtype(), 0);
  if (at.needs(0)) at.set(0, ops::scatter_elements(at.dy(), at.input(1), constant_like(at, at.input(1), 0), axis));
  if (at.needs(2)) at.set(2, ops::where(stayed(at, axis), ops::gather_elements(at.dy(), at.input(1), axis), zero));
}

/// y = x times all updates u of that index: dx = dy times their product; du = dy x times the other updates, computed as a quotient by u
/// unless a factor is 0.
void product_gradient(Gradient& at, std::int64_t axis) {
  const Value x = at.input(0), indices = at.input(1), u = at.input(2);
  const auto mul = ops::ScatterReduction::mul;
  if (at.needs(0)) at.set(0, ops::scatter_elements(at.dy(), indices, u, axis, mul));
  if (!at.needs(2)) return;
  const Value zero = scalar(at.graph, x.dtype(), 0), one = scalar(at.graph, x.dtype(), 1);
  const Value is_zero = ops::equal(u, zero);
  const Value factor = ops::where(is_zero, one, u), zeros = ops::where(is_zero, one, zero);
  const Value product = ops::scatter_elements(ops::mul(at.dy(), x), indices, factor, axis, mul);
  const Value all_zeros = ops::scatter_elements(constant_like(at, x, 0), indices, zeros, axis, ops::ScatterReduction::add);
  const Value others = ops::sub(ops::gather_elements(all_zeros, indices, axis), zeros);
  const Value quotient = ops::div(ops::gather_elements(product, indices, axis), factor);
  at.set(2, ops::where(ops::equal(others, zero), quotient, zero));
}

void scatter_elements_gradient(Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_scatter>();
  switch (attributes.reduction) {
    case TENON_SCATTER_NONE:
      return replace_gradient(at, attributes.axis);
    case TENON_SCATTER_ADD:
      if (at.needs(0)) at.set(0, at.dy());
      if (at.needs(2)) at.set(2, ops::gather_elements(at.dy(), at.input(1), attributes.axis));
      return;
    default:
      return product_gradient(at, attributes.axis);
  }
}

void infer_scatter_add(Inference& at) {
  at.expect_inputs(3, 3);
  at.expect_number(0);
  expect_indices(at);
  at.expect_same_dtype(0, 2);
  auto attributes = at.attributes.as<tenon_attributes_axis>();
  at.expect_flag(attributes.keepdims, "keepdims");
  attributes.axis = at.axis(attributes.axis, 0);
  attributes.keepdims = 0;
  at.attributes = Attributes::of(attributes);
  const Shape &x = at.shape(0), &indices = at.shape(1), &updates = at.shape(2);
  const auto axis = static_cast<std::size_t>(attributes.axis);
  bool fits = updates.rank() == x.rank() - 1 + indices.rank();
  for (std::size_t i = 0; fits && i < updates.rank(); ++i) {
    const std::int64_t expected = i < axis ? x[i] : i < axis + indices.rank() ? indices[i - axis] : x[i - indices.rank() + 1];
    fits = updates[i] == expected;
  }
  if (!fits) {
    at.fail(fmt::format("expected updates in the shape of x with that of indices in place of axis {}: {}, {}, {}", axis, at.str(0),
                        at.str(1), at.str(2)));
  }
  at.output(at.dtype(0), x);
}

void scatter_add_gradient(Gradient& at) {
  if (at.needs(0)) at.set(0, at.dy());
  if (at.needs(2)) at.set(2, ops::gather(at.dy(), at.input(1), at.attributes.as<tenon_attributes_axis>().axis));
}

}  // namespace

extern const OpRules rules_scatter_elements, rules_scatter_add;
const OpRules rules_scatter_elements{
    "y = x, then y[indices[i, j], j] = updates[i, j] (axis 0), or with the update added or multiplied, in row-major order, so the last "
    "one replaces. Indices are in [-n, n), negative from the end; others are an error at execution.",
    infer_scatter_elements, PrecisionClass::fp32, per_element<0>, scatter_elements_gradient};
const OpRules rules_scatter_add{
    "y = x with slice k of updates added to slice indices[k] along axis, in the order of k: the transpose of gather. Indices are in [-n, "
    "n), negative from the end; others are an error at execution.",
    infer_scatter_add, PrecisionClass::fp32, per_element<1>, scatter_add_gradient};

}  // namespace graph

namespace ops {

Value scatter_elements(Value x, Value indices, Value updates, std::int64_t axis, ScatterReduction reduction) {
  tenon_attributes_scatter attributes{};
  attributes.reduction = static_cast<std::uint32_t>(reduction);
  attributes.axis = axis;
  return graph::apply_op(TENON_OP_ScatterElements, {x, indices, updates}, Attributes::of(attributes));
}

Value scatter_add(Value x, Value indices, Value updates, std::int64_t axis) {
  tenon_attributes_axis attributes{};
  attributes.axis = axis;
  return graph::apply_op(TENON_OP_ScatterAdd, {x, indices, updates}, Attributes::of(attributes));
}

}  // namespace ops
}  // namespace tenon
