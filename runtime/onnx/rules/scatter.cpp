// SPDX-License-Identifier: Apache-2.0
// onnx/rules/scatter.cpp - Scatter, ScatterElements and ScatterND.
#include "onnx/rules/scatter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules/dtypes.h"
#include "onnx/rules/numbers.h"
#include "onnx/rules/positions.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

using Reduction = ops::ScatterReduction;

Reduction reduction_of(const Node& node) {
  const std::string_view name = node.text("reduction", "none");
  if (name == "none") return Reduction::none;
  if (name == "add") return Reduction::add;
  if (name == "mul") return Reduction::mul;
  if (name == "max") return Reduction::max;
  if (name == "min") return Reduction::min;
  node.fail(fmt::format("expected a reduction none, add, mul, max or min, got \"{}\"", name));
}

/// An element after an update.
Value updated(Reduction reduction, Value x, Value update) {
  const bool logical = x.dtype() == DType::boolean;
  switch (reduction) {
    case Reduction::add:
      return logical ? ops::logical_or(x, update) : wrapping<ops::add>(x, update);
    case Reduction::mul:
      return logical ? ops::logical_and(x, update) : wrapping<ops::mul>(x, update);
    case Reduction::max:
      return logical ? ops::logical_or(x, update) : maximum(x, update);
    case Reduction::min:
      return logical ? ops::logical_and(x, update) : minimum(x, update);
    default:
      return update;
  }
}

/// The part of a tensor whose first dimensions the rows of `indices` (..., sizes) enumerate in row-major order, if they do.
std::optional<Part> enumerated_part(const Node& node, const Tensor& indices, const Shape& x) {
  if (!indices.defined()) return {};
  const std::vector<std::int64_t> elements = indices.to(DType::i64).to_vector<std::int64_t>();
  const auto dims = static_cast<std::size_t>(indices.shape()[indices.shape().rank() - 1]);
  const std::size_t rows = elements.size() / dims;
  const auto at = [&](std::size_t row, std::size_t i) {
    const std::int64_t index = elements[row * dims + i];
    if (index < -x[i] || index >= x[i]) {
      node.fail(fmt::format("expected indices in [-{0}, {0}) for axis {1} of x {2}, got {3}", x[i], i, x.str(), index));
    }
    return index < 0 ? index + x[i] : index;
  };
  Part part(x);
  std::size_t count = 1;
  for (std::size_t i = 0; i < dims; ++i) {
    part.begins[i] = at(0, i);
    part.sizes[i] = at(rows - 1, i) - part.begins[i] + 1;
    if (part.sizes[i] < 1 || __builtin_mul_overflow(count, static_cast<std::size_t>(part.sizes[i]), &count)) return {};
  }
  if (count != rows) return {};
  std::vector<std::int64_t> place = part.begins;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < dims; ++i) {
      if (at(row, i) != place[i]) return {};
    }
    for (std::size_t i = dims; i-- > 0;) {
      if (++place[i] < part.begins[i] + part.sizes[i]) break;
      place[i] = part.begins[i];
    }
  }
  return part;
}

}  // namespace

void scatter_elements(Node& node) {
  const Value x = node.input(0), indices = node.input(1), updates = node.input(2);
  const std::int64_t axis = node.resolve_axis(node.integer("axis", 0), node.rank(0));
  const Reduction reduction = reduction_of(node);
  if (updates.shape() != indices.shape()) {
    node.fail(
        fmt::format("expected an update for each index, got indices {} and updates {}", indices.shape().str(), updates.shape().str()));
  }
  if (indices.shape().count() == 0) return node.output(0, node.operand(0));
  node.output(0, ops::scatter_elements(x, indices, updates, axis, reduction));
}

void scatter_nd(Node& node) {
  const Value x = node.input(0), indices = node.input(1), updates = node.input(2);
  const Shape shape = x.shape(), at = indices.shape();
  const std::int64_t dims = at.rank() == 0 ? 0 : at[at.rank() - 1];
  if (dims < 1 || dims > static_cast<std::int64_t>(shape.rank())) {
    node.fail(fmt::format("expected indices (..., k) with 1 <= k <= rank of x {}, got {}", shape.str(), at.str()));
  }
  const auto indexed = static_cast<std::size_t>(dims);
  std::vector<std::int64_t> expected(at.begin(), at.end() - 1);
  expected.insert(expected.end(), shape.begin() + dims, shape.end());
  if (!std::ranges::equal(updates.shape(), expected)) {
    node.fail(
        fmt::format("expected updates in the shape of the indices {} without the last dimension, followed by the dimensions of x {} "
                    "that they do not select, got {}",
                    at.str(), shape.str(), updates.shape().str()));
  }
  const Reduction reduction = reduction_of(node);
  if (updates.shape().count() == 0) return node.output(0, node.operand(0));
  if (const std::optional<Part> part = enumerated_part(node, node.known_if_constant(1), shape); part) {
    const Value before = part_of(x, *part);
    return node.output(0, with_part(x, *part, updated(reduction, before, ops::reshape(updates, before.shape()))));
  }
  const std::int64_t slices = product_of(node, at, 0, at.rank() - 1), rows = product_of(node, shape, 0, indexed);
  const std::int64_t inner = product_of(node, shape, indexed, shape.rank());
  const std::vector<std::int64_t> sizes(shape.begin(), shape.begin() + dims);
  const Value linear = ops::reshape(linear_indices(node, indices, sizes), Shape{slices});
  const Value from = ops::reshape(x, Shape{rows, inner});
  node.output(0, ops::reshape(ops::scatter_slices(from, linear, ops::reshape(updates, Shape{slices, inner}), 0, reduction), shape));
}

Value updated_by_sample(Node& node, Value cache, Value places, Value updates, std::int64_t axis) {
  const Shape shape = cache.shape();
  const auto a = static_cast<std::size_t>(axis);
  const std::int64_t batch = shape[0], length = shape[a], steps = updates.shape()[a];
  if (batch == 1) return ops::scatter_slices(cache, ops::reshape(places, Shape{steps}), updates, axis);
  const std::int64_t lines = product_of(node, shape, 0, a), inner = product_of(node, shape, a + 1, shape.rank());
  const std::int64_t count = product_of(node, shape, 0, a + 1);
  const Value at = ops::reshape(from_begin(node, places, length), Shape{batch, 1, steps});
  const Value begins = ops::reshape(positions_along(node, lines, 0, 1, length), Shape{batch, lines / batch, 1});
  // What is outside of the cache of its sample gets an index that is an error, as it would be a place of another sample.
  const Value inside =
      ops::logical_and(ops::greater_equal(at, node.scalar(DType::i64, 0)), ops::less(at, node.constant(Tensor::scalar(length))));
  const Value indices = ops::where(inside, ops::add(begins, at), node.constant(Tensor::scalar(count)));
  const Value y = ops::scatter_slices(ops::reshape(cache, Shape{count, inner}), ops::reshape(indices, Shape{lines * steps}),
                                      ops::reshape(updates, Shape{lines * steps, inner}));
  return ops::reshape(y, shape);
}

}  // namespace tenon::onnx
