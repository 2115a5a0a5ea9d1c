// SPDX-License-Identifier: Apache-2.0
// ops/shape.cpp - ops that rearrange elements.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/op.h"
#include "ops/axis_attributes.h"

namespace tenon {
namespace graph {
namespace {

const Shape& expected_shape(Inference& at) {
  if (!at.options.shape) at.fail("the result's shape is not given (NodeOptions::shape)");
  return *at.options.shape;
}

void infer_reshape(Inference& at) {
  at.expect_inputs(1, 1);
  const Shape& y = expected_shape(at);
  if (y.count() != at.shape(0).count()) {
    at.fail(fmt::format("expected equal counts: {} has {} elements, {} expects {}", at.str(0), at.shape(0).count(), y.str(), y.count()));
  }
  at.output(at.dtype(0), y);
}

void infer_flatten(Inference& at) {
  at.expect_inputs(1, 1);
  auto attributes = at.attributes.as<tenon_attributes_axis>();
  const Shape& x = at.shape(0);
  const std::int64_t rank = static_cast<std::int64_t>(x.rank());
  // unlike other axes, it may equal the rank, since it denotes a position between dimensions
  if (attributes.axis != rank) attributes.axis = at.axis(attributes.axis, 0);
  at.attributes = Attributes::of(attributes);
  std::int64_t rows = 1, columns = 1;
  for (std::int64_t i = 0; i < rank; ++i) (i < attributes.axis ? rows : columns) *= x[static_cast<std::size_t>(i)];
  at.output(at.dtype(0), {rows, columns});
}

void reshape_gradient(Gradient& at) {
  at.set(0, ops::reshape(at.dy(), at.input(0).shape()));
}

void infer_transpose(Inference& at) {
  at.expect_inputs(1, 1);
  auto attributes = at.attributes.as<tenon_attributes_axes>();
  const Shape& x = at.shape(0);
  const auto rank = static_cast<std::uint32_t>(x.rank());
  if (attributes.count == 0) {
    attributes.count = rank;
    for (std::uint32_t i = 0; i < rank; ++i) attributes.axes[i] = rank - 1 - i;
  }
  if (attributes.count != rank)
    at.fail(fmt::format("expected a permutation of {1} axes for {2}, got {0}", attributes.count, rank, at.str(0)));
  std::array<bool, Shape::max_rank> seen{};
  Shape y;
  for (std::uint32_t i = 0; i < rank; ++i) {
    std::int64_t& axis = attributes.axes[i];
    axis = at.axis(axis, 0);
    if (seen[static_cast<std::size_t>(axis)]) at.fail(fmt::format("axis {} occurs twice in the permutation of {}", axis, at.str(0)));
    seen[static_cast<std::size_t>(axis)] = true;
    y.push_back(x[static_cast<std::size_t>(axis)]);
  }
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), y);
}

void transpose_gradient(Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_axes>();
  std::vector<std::int64_t> inverse(attributes.count);
  for (std::uint32_t i = 0; i < attributes.count; ++i) inverse[static_cast<std::size_t>(attributes.axes[i])] = i;
  at.set(0, ops::transpose(at.dy(), inverse));
}

void infer_expand(Inference& at) {
  at.expect_inputs(1, 1);
  const Shape& x = at.shape(0);
  const Shape& y = expected_shape(at);
  bool fits = x.rank() <= y.rank();
  for (std::size_t i = 0; fits && i < x.rank(); ++i) fits = x[i] == 1 || x[i] == y[y.rank() - x.rank() + i];
  if (!fits) at.fail(fmt::format("{} does not broadcast to {}", at.str(0), y.str()));
  at.output(at.dtype(0), y);
}

void expand_gradient(Gradient& at) {
  at.set(0, unbroadcast(at.dy(), at.input(0).shape()));
}

}  // namespace

extern const OpRules rules_reshape, rules_flatten, rules_transpose, rules_expand;
const OpRules rules_reshape{"y = x in row-major order with another shape of the same count.", infer_reshape, PrecisionClass::inherits,
                            per_element<0>, reshape_gradient};
const OpRules rules_flatten{"y = x as (d0 ... d[axis-1], d[axis] ...); axis may be the rank.", infer_flatten, PrecisionClass::inherits,
                            per_element<0>, reshape_gradient};
const OpRules rules_transpose{"Axis i of y is axis perm[i] of x; no perm: the axes are reversed.", infer_transpose,
                              PrecisionClass::inherits, per_element<0>, transpose_gradient};
const OpRules rules_expand{"y = x broadcast to a shape.", infer_expand, PrecisionClass::inherits, per_element<0>, expand_gradient};

}  // namespace graph

namespace ops {

Value reshape(Value x, const Shape& shape) {
  return graph::apply_op(TENON_OP_Reshape, {x}, {}, {.name = {}, .shape = shape});
}

Value reshape(Value x, std::span<const std::int64_t> dims) {
  const auto fail = [&](const char* text) {
    std::string list;
    for (std::int64_t size : dims) list += (list.empty() ? "" : ",") + std::to_string(size);
    throw Error(fmt::format("reshape of '{}' {}{} to ({}): {}", x.name(), name_of(x.dtype()), x.shape().str(), list, text));
  };
  std::vector<std::int64_t> sizes(dims.begin(), dims.end());
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::int64_t& size : sizes) {
    if (size < -1) fail("expected sizes >= 0, or one -1");
    if (size == -1 && open != nullptr) fail("-1 occurs twice");
    if (size == -1)
      open = &size;
    else
      known *= size;
  }
  if (open != nullptr) {
    if (known == 0) fail("-1 cannot be inferred with a size of 0");
    if (x.shape().count() % known != 0) fail("the count is not divisible by the given sizes");
    *open = x.shape().count() / known;
  }
  return reshape(x, Shape(sizes));
}

Value reshape(Value x, std::initializer_list<std::int64_t> dims) {
  return reshape(x, std::span(dims.begin(), dims.size()));
}

Value flatten(Value x, std::int64_t axis) {
  return graph::apply_op(TENON_OP_Flatten, {x}, graph::axis_attributes(axis));
}

Value transpose(Value x, const std::vector<std::int64_t>& permutation) {
  return graph::apply_op(TENON_OP_Transpose, {x}, graph::axes_attributes("transpose", permutation));
}

Value expand(Value x, const Shape& shape) {
  return graph::apply_op(TENON_OP_Expand, {x}, {}, {.name = {}, .shape = shape});
}

Value squeeze(Value x, const std::vector<std::int64_t>& axes) {
  const Shape shape = x.shape();
  std::array<bool, Shape::max_rank> removed{};
  for (const std::int64_t axis : axes) {
    const auto i = static_cast<std::size_t>(resolve_axis(axis, shape.rank(), fmt::format("squeeze: '{}' {}", x.name(), shape.str())));
    if (shape[i] != 1) {
      throw Error(fmt::format("squeeze: expected a size of 1 for axis {} of '{}' {}, got {}", axis, x.name(), shape.str(), shape[i]));
    }
    removed[i] = true;
  }
  Shape rest;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (axes.empty() ? shape[i] != 1 : !removed[i]) rest.push_back(shape[i]);
  }
  return reshape(x, rest);
}

Value unsqueeze(Value x, const std::vector<std::int64_t>& axes) {
  const Shape shape = x.shape();
  const std::size_t rank = shape.rank() + axes.size();
  if (rank > Shape::max_rank) {
    throw Error(fmt::format("unsqueeze: '{}' {} with {} more dimensions has {}, expected at most {}", x.name(), shape.str(), axes.size(),
                            rank, Shape::max_rank));
  }
  std::array<bool, Shape::max_rank> added{};
  for (const std::int64_t axis : axes) {
    bool& seen =
        added[static_cast<std::size_t>(resolve_axis(axis, rank, fmt::format("unsqueeze: the result of '{}' {}", x.name(), shape.str())))];
    if (seen) throw Error(fmt::format("unsqueeze: axis {} of the result of '{}' {} is repeated", axis, x.name(), shape.str()));
    seen = true;
  }
  Shape wider;
  for (std::size_t i = 0, next = 0; i < rank; ++i) wider.push_back(added[i] ? 1 : shape[next++]);
  return reshape(x, wider);
}

Value tile(Value x, const std::vector<std::int64_t>& repeats) {
  Shape shape = x.shape();
  if (repeats.size() != shape.rank()) {
    throw Error(fmt::format("tile: expected one repeat count per dimension of '{}' {}, got {}", x.name(), shape.str(), repeats.size()));
  }
  // the last axis first, so that later copies have the longest contiguous rows
  for (std::size_t i = shape.rank(); i-- > 0;) {
    const std::int64_t n = repeats[i];
    if (n < 0) throw Error(fmt::format("tile: axis {} of '{}' {}: expected 0 or more repeats, got {}", i, x.name(), shape.str(), n));
    if (n == 1) continue;
    std::int64_t outer = 1, row = 1;
    for (std::size_t d = 0; d < shape.rank(); ++d) (d < i ? outer : row) *= shape[d];
    std::int64_t size = 0;
    if (__builtin_mul_overflow(shape[i], n, &size)) {
      throw Error(fmt::format("tile: axis {} of '{}' {}, repeated {} times, exceeds the maximum size", i, x.name(), shape.str(), n));
    }
    shape.set(i, size);
    x = reshape(expand(reshape(x, Shape{outer, 1, row}), Shape{outer, n, row}), shape);
  }
  return x;
}

}  // namespace ops
}  // namespace tenon
