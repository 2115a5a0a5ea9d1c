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

enum class Reduction { none, add, mul, max, min };

Reduction reduction_of(const Node& node) {
  const std::string_view name = node.text("reduction", "none");
  if (name == "none") return Reduction::none;
  if (name == "add") return Reduction::add;
  if (name == "mul") return Reduction::mul;
  if (name == "max") return Reduction::max;
  if (name == "min") return Reduction::min;
  node.fail(fmt::format("expected a reduction none, add, mul, max or min, got \"{}\"", name));
}

bool is_extremum(Reduction reduction) {
  return reduction == Reduction::max || reduction == Reduction::min;
}

ops::ScatterReduction as_scatter(Reduction reduction) {
  return reduction == Reduction::add   ? ops::ScatterReduction::add
         : reduction == Reduction::mul ? ops::ScatterReduction::mul
                                       : ops::ScatterReduction::none;
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

/// Updates in the order of their indices along an axis, which are from the begin of x and in ascending order. Each is reduced with those
/// before it that have the same index, so that the last one of an index stands for all of them: in steps of 1, 2, 4, ..., each of which
/// doubles the number of updates that one stands for.
Value reduced_by_index(Reduction reduction, Value indices, Value updates, std::int64_t axis) {
  const std::int64_t n = indices.shape()[static_cast<std::size_t>(axis)];
  for (std::int64_t step = 1; step < n; step *= 2) {
    const Value same = ops::equal(ops::slice(indices, axis, 0, n - step), ops::slice(indices, axis, step, n));
    const Value before = ops::slice(updates, axis, 0, n - step), later = ops::slice(updates, axis, step, n);
    const Value reduced = ops::where(same, updated(reduction, before, later), later);
    updates = ops::concat({ops::slice(updates, axis, 0, step), reduced}, axis);
  }
  return updates;
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
  if (!is_extremum(reduction)) return node.output(0, ops::scatter_elements(x, indices, updates, axis, as_scatter(reduction)));
  // The extremum of all updates of an element, and then of the element, replaces it.
  const auto along = static_cast<std::size_t>(axis);
  if (indices.shape().rank() != x.shape().rank()) {
    node.fail(fmt::format("expected indices of the rank of x, got x {} and indices {}", x.shape().str(), indices.shape().str()));
  }
  const auto [sorted, order] = ops::top_k(from_begin(node, indices, x.shape()[along]), indices.shape()[along], axis, false);
  const Value all = reduced_by_index(reduction, sorted, ops::gather_elements(updates, order, axis), axis);
  node.output(0, ops::scatter_elements(x, sorted, updated(reduction, ops::gather_elements(x, sorted, axis), all), axis));
}

namespace {

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

/// x (rows, n) with updates (k, n) of the rows at `indices` (k), which are from the begin.
Value scatter_rows(Reduction reduction, Value x, Value indices, Value updates) {
  const Shape shape = updates.shape();
  if (reduction == Reduction::add && x.dtype() != DType::boolean) {
    const auto add = [&](Value to, Value rows) { return ops::scatter_add(to, indices, rows); };
    return computed_in(arithmetic_dtype(x.dtype()), add, x, updates);
  }
  if (is_extremum(reduction)) {
    if (shape[0] > 1) {
      const auto [sorted, order] = ops::top_k(indices, shape[0], 0, false);
      indices = sorted;
      updates = reduced_by_index(reduction, ops::reshape(indices, Shape{shape[0], 1}), ops::gather(updates, order), 0);
    }
    updates = updated(reduction, ops::gather(x, indices), updates);
  }
  const Value rows = ops::expand(ops::reshape(indices, Shape{shape[0], 1}), shape);
  return ops::scatter_elements(x, rows, updates, 0, as_scatter(reduction));
}

}  // namespace

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
  const Value y = scatter_rows(reduction, ops::reshape(x, Shape{rows, inner}), linear, ops::reshape(updates, Shape{slices, inner}));
  node.output(0, ops::reshape(y, shape));
}

}  // namespace tenon::onnx
