// SPDX-License-Identifier: Apache-2.0
// ops/scatter.cpp - changes the elements of a tensor that are selected by indices.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <numeric>

#include "graph/op.h"
#include "ops/axis_attributes.h"

namespace tenon {
namespace graph {
namespace {

void expect_indices(const Inference& at) {
  if (at.dtype(1) != DType::i32 && at.dtype(1) != DType::i64) at.fail(fmt::format("expected indices of i32 or i64, got {}", at.str(1)));
}

/// Checks operands and attributes but for shapes.
/// Returns  the axis, resolved.
std::int64_t expect_scatter(Inference& at) {
  at.expect_inputs(3, 3);
  expect_indices(at);
  at.expect_same_dtype(0, 2);
  auto attributes = at.attributes.as<tenon_attributes_scatter>();
  if (attributes.reduction > TENON_SCATTER_MIN)
    at.fail(fmt::format("reduction is {}, expected none (0), add (1), mul (2), max (3) or min (4)", attributes.reduction));
  attributes.axis = at.axis(attributes.axis, 0);
  at.attributes = Attributes::of(attributes);
  return attributes.axis;
}

void infer_scatter_elements(Inference& at) {
  const std::int64_t axis = expect_scatter(at);
  const Shape &x = at.shape(0), &indices = at.shape(1);
  if (indices != at.shape(2)) at.fail(fmt::format("expected an update for each index: {}, {}", at.str(1), at.str(2)));
  bool fits = x.rank() == indices.rank();
  for (std::size_t i = 0; fits && i < x.rank(); ++i) fits = static_cast<std::int64_t>(i) == axis || indices[i] <= x[i];
  if (!fits) {
    at.fail(fmt::format("expected indices of x's rank, no larger than x except along axis {}: {}, {}", axis, at.str(0), at.str(1)));
  }
  at.output(at.dtype(0), x);
}

/// x with updates at slices of an axis: those of ScatterAdd and ScatterSlices.
void expect_slices(Inference& at, std::int64_t along) {
  const Shape &x = at.shape(0), &indices = at.shape(1), &updates = at.shape(2);
  const auto axis = static_cast<std::size_t>(along);
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

void infer_scatter_slices(Inference& at) {
  expect_slices(at, expect_scatter(at));
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
  expect_slices(at, attributes.axis);
}

void scatter_add_gradient(Gradient& at) {
  if (at.needs(0)) at.set(0, at.dy());
  if (at.needs(2)) at.set(2, ops::gather(at.dy(), at.input(1), at.attributes.as<tenon_attributes_axis>().axis));
}

/// What the indices select, of elements or of slices.
struct Selection {
  Gradient& at;
  bool slices;
  std::int64_t axis;

  Value gather(Value x) const { return slices ? ops::gather(x, at.input(1), axis) : ops::gather_elements(x, at.input(1), axis); }
  Value scatter(Value x, Value updates, ops::ScatterReduction reduction = ops::ScatterReduction::none) const {
    return slices ? ops::scatter_slices(x, at.input(1), updates, axis, reduction)
                  : ops::scatter_elements(x, at.input(1), updates, axis, reduction);
  }
};

Value constant_like(Gradient& at, Value like, double value) {
  const Value element = scalar(at.graph, like.dtype(), value);
  return like.shape().rank() == 0 ? element : ops::expand(element, like.shape());
}

/// For each index: whether it is the last one of its value. Broadcasts to the updates.
Value stayed(const Selection& of) {
  Gradient& at = of.at;
  const Shape x = at.input(0).shape(), indices = at.input(1).shape();
  std::vector<std::int64_t> count(static_cast<std::size_t>(indices.count()));
  std::iota(count.begin(), count.end(), 0);
  const Value position = at.graph.constant(Tensor::of(count, indices));
  const Value nothing = scalar(at.graph, DType::i64, 0);
  if (!of.slices) return ops::equal(of.gather(of.scatter(ops::expand(nothing, x), position)), position);
  // A slice of one element stands for each slice.
  const auto axis = static_cast<std::size_t>(of.axis);
  const Value last = ops::scatter_slices(ops::expand(nothing, Shape{x[axis]}), at.input(1), position);
  std::vector<std::int64_t> shape(indices.begin(), indices.end());
  shape.resize(indices.rank() + x.rank() - 1 - axis, 1);
  return ops::reshape(ops::equal(ops::gather(last, at.input(1)), position), Shape(shape));
}

void replace_gradient(const Selection& of) {
  Gradient& at = of.at;
  if (at.needs(0)) at.set(0, of.scatter(at.dy(), constant_like(at, at.input(2), 0)));
  if (at.needs(2)) at.set(2, ops::where(stayed(of), of.gather(at.dy()), scalar(at.graph, at.input(0).dtype(), 0)));
}

/// y = x times all updates u of that index: dx = dy times their product; du = dy x times the other updates, computed as a quotient by u
/// unless a factor is 0.
void product_gradient(const Selection& of) {
  Gradient& at = of.at;
  const Value x = at.input(0), u = at.input(2);
  if (at.needs(0)) at.set(0, of.scatter(at.dy(), u, ops::ScatterReduction::mul));
  if (!at.needs(2)) return;
  const Value zero = scalar(at.graph, x.dtype(), 0), one = scalar(at.graph, x.dtype(), 1);
  const Value is_zero = ops::equal(u, zero);
  const Value factor = ops::where(is_zero, one, u), zeros = ops::where(is_zero, one, zero);
  const Value product = of.scatter(ops::mul(at.dy(), x), factor, ops::ScatterReduction::mul);
  const Value all_zeros = of.scatter(constant_like(at, x, 0), zeros, ops::ScatterReduction::add);
  const Value others = ops::sub(of.gather(all_zeros), zeros);
  at.set(2, ops::where(ops::equal(others, zero), ops::div(of.gather(product), factor), zero));
}

/// x and the updates that equal the extremum share its gradient.
void extremum_gradient(const Selection& of) {
  Gradient& at = of.at;
  const Value y = at.output(0), x = at.input(0), u = at.input(2);
  const auto equals = [&](Value operand, Value extremum) { return ops::cast(ops::equal(operand, extremum), x.dtype()); };
  const Value from_x = equals(x, y), from_u = equals(u, of.gather(y));
  const Value share = ops::div(at.dy(), of.scatter(from_x, from_u, ops::ScatterReduction::add));
  if (at.needs(0)) at.set(0, ops::mul(share, from_x));
  if (at.needs(2)) at.set(2, ops::mul(of.gather(share), from_u));
}

template <bool slices>
void scatter_gradient(Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_scatter>();
  const Selection of{at, slices, attributes.axis};
  switch (attributes.reduction) {
    case TENON_SCATTER_NONE:
      return replace_gradient(of);
    case TENON_SCATTER_ADD:
      if (at.needs(0)) at.set(0, at.dy());
      if (at.needs(2)) at.set(2, of.gather(at.dy()));
      return;
    case TENON_SCATTER_MUL:
      return product_gradient(of);
    default:
      return extremum_gradient(of);
  }
}

}  // namespace

extern const OpRules rules_scatter_elements, rules_scatter_add, rules_scatter_slices;
const OpRules rules_scatter_elements{
    "y = x, then y[indices[i, j], j] = updates[i, j] (axis 0), or reduced with the update, in row-major order, so the last one replaces. "
    "Indices are in [-n, n), negative from the end; others are an error at execution.",
    infer_scatter_elements, PrecisionClass::fp32, per_element<0>, scatter_gradient<false>};
const OpRules rules_scatter_add{
    "y = x with slice k of updates added to slice indices[k] along axis, in the order of k: the transpose of gather. Indices are in [-n, "
    "n), negative from the end; others are an error at execution.",
    infer_scatter_add, PrecisionClass::fp32, per_element<1>, scatter_add_gradient};
const OpRules rules_scatter_slices{
    "y = x with slice k of updates in the place of slice indices[k] along axis, or reduced with it, in the order of k, so the last one "
    "replaces. Indices are in [-n, n), negative from the end; others are an error at execution.",
    infer_scatter_slices, PrecisionClass::fp32, per_element<0>, scatter_gradient<true>};

}  // namespace graph

namespace ops {

namespace {
Attributes attributes_of(std::int64_t axis, ScatterReduction reduction) {
  tenon_attributes_scatter attributes{};
  attributes.reduction = static_cast<std::uint32_t>(reduction);
  attributes.axis = axis;
  return Attributes::of(attributes);
}
}  // namespace

Value scatter_elements(Value x, Value indices, Value updates, std::int64_t axis, ScatterReduction reduction) {
  return graph::apply_op(TENON_OP_ScatterElements, {x, indices, updates}, attributes_of(axis, reduction));
}

Value scatter_slices(Value x, Value indices, Value updates, std::int64_t axis, ScatterReduction reduction) {
  return graph::apply_op(TENON_OP_ScatterSlices, {x, indices, updates}, attributes_of(axis, reduction));
}

Value scatter_add(Value x, Value indices, Value updates, std::int64_t axis) {
  return graph::apply_op(TENON_OP_ScatterAdd, {x, indices, updates}, graph::axis_attributes(axis));
}

}  // namespace ops
}  // namespace tenon
