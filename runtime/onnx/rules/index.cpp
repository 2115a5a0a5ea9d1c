// SPDX-License-Identifier: Apache-2.0
// onnx/rules/index.cpp - elements selected by indices, slices and order.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/numbers.h"
#include "onnx/rules/pad.h"
#include "onnx/rules/positions.h"
#include "onnx/rules/scatter.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Operand i, if it is one integer that no input of the model determines.
std::optional<std::int64_t> constant_integer(Node& node, std::size_t i) {
  if (node.shape(i).count() != 1) return {};
  const Tensor known = node.known_if_constant(i);
  if (!known.defined()) return {};
  return known.to(DType::i64).reshape({}).data<std::int64_t>()[0];
}

void gather(Node& node) {
  const Value x = node.input(0), indices = node.input(1);
  const std::int64_t axis = node.resolve_axis(node.integer("axis", 0), node.rank(0)), n = x.shape()[static_cast<std::size_t>(axis)];
  const std::optional<std::int64_t> index = constant_integer(node, 1);
  if (!index) return node.output(0, ops::gather(x, indices, axis));
  // One slice, which is read in place.
  if (*index < -n || *index >= n) node.fail(fmt::format("expected an index in [-{0}, {0}), got {1}", n, *index));
  const Shape shape = x.shape(), at = indices.shape();
  Sizes sizes(shape.begin(), shape.begin() + axis);
  sizes.insert(sizes.end(), at.begin(), at.end());
  sizes.insert(sizes.end(), shape.begin() + axis + 1, shape.end());
  const std::int64_t first = *index < 0 ? *index + n : *index;
  node.output(0, ops::reshape(ops::slice(x, axis, first, first + 1), shape_of(node, sizes)));
}

void gather_elements(Node& node) {
  const Value x = node.input(0);
  node.output(0, ops::gather_elements(x, node.input(1), node.resolve_axis(node.integer("axis", 0), node.rank(0))));
}

void gather_nd(Node& node) {
  const Value x = node.input(0), indices = node.input(1);
  const Shape shape = x.shape(), at = indices.shape();
  const auto rank = static_cast<std::int64_t>(shape.rank()), index_rank = static_cast<std::int64_t>(at.rank());
  const std::int64_t batch_dims = node.integer("batch_dims", 0);
  if (batch_dims < 0 || batch_dims >= std::min(rank, index_rank)) {
    node.fail(fmt::format("expected 0 <= batch_dims < the ranks of x {} and indices {}, got {}", shape.str(), at.str(), batch_dims));
  }
  const auto batched = static_cast<std::size_t>(batch_dims);
  const std::int64_t dims = at[at.rank() - 1];
  if (dims < 1 || dims > rank - batch_dims || !std::equal(at.begin(), at.begin() + batch_dims, shape.begin())) {
    node.fail(fmt::format("expected indices of the batch dimensions of x {} (batch_dims is {}), and a last dimension of 1 to {}, got {}",
                          shape.str(), batch_dims, rank - batch_dims, at.str()));
  }
  const std::size_t first_kept = batched + static_cast<std::size_t>(dims);
  Sizes sizes(at.begin(), at.end() - 1);
  sizes.insert(sizes.end(), shape.begin() + batch_dims + dims, shape.end());
  const Shape result = shape_of(node, sizes);
  if (result.count() == 0) return node.output(0, Tensor::zeros(x.dtype(), result));
  const std::int64_t batch = product_of(node, shape, 0, batched), rows = product_of(node, shape, batched, first_kept);
  Value linear;
  if (batch_dims == 0 && dims == 1) {
    linear = ops::reshape(indices, Shape(at.dims().first(at.rank() - 1)));
  } else {
    linear = linear_indices(node, indices, Sizes(shape.begin() + batch_dims, shape.begin() + batch_dims + dims));
  }
  if (batch > 1) {
    Sizes per_batch(at.begin(), at.begin() + batch_dims);
    per_batch.resize(at.rank() - 1, 1);
    linear = ops::add(linear, ops::reshape(positions_along(node, batch, 0, 1, rows), Shape(per_batch)));
  }
  const Shape table{product_of(node, batch, rows), product_of(node, shape, first_kept, shape.rank())};
  node.output(0, ops::reshape(ops::gather(ops::reshape(x, table), linear), result));
}

/// `starts`, `ends` and `steps` along `axes`, as Python's slices.
void slice_by(Node& node, const Sizes& starts, const Sizes& ends, Sizes axes, Sizes steps) {
  const Value x = node.input(0);
  const Shape shape = x.shape();
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    node.fail(fmt::format("expected as many starts as ends, axes and steps, got {}, {}, {}, {}", starts.size(), ends.size(), axes.size(),
                          steps.size()));
  }
  Part part(shape);
  std::vector<bool> seen(shape.rank(), false);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(node.resolve_axis(axes[i], node.rank(0)));
    if (seen[axis]) node.fail(fmt::format("expected distinct axes, got axis {} again", axes[i]));
    seen[axis] = true;
    const std::int64_t n = shape[axis], step = steps[i];
    if (step == 0) node.fail(fmt::format("expected a step other than 0 along axis {}", axes[i]));
    // Negative positions count from the end; all are clamped to what the direction can reach. Only an end can be -1, before the first
    // element.
    const std::int64_t lowest_end = step > 0 ? 0 : -1, highest = step > 0 ? n : n - 1;
    const auto position = [&](std::int64_t at, std::int64_t lowest) {
      if (at < 0) at = at >= -n ? at + n : lowest;
      return std::clamp(at, lowest, highest);
    };
    const std::int64_t start = position(starts[i], std::min<std::int64_t>(0, highest)), end = position(ends[i], lowest_end);
    const std::int64_t way = step > 0 ? end - start : start - end;
    const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
    part.sizes[axis] = way <= 0 ? 0 : 1 + static_cast<std::int64_t>(static_cast<std::uint64_t>(way - 1) / stride);
    part.begins[axis] = part.sizes[axis] == 0 ? 0 : start;
    part.steps[axis] = part.sizes[axis] <= 1 ? 1 : step;
  }
  const Shape result(part.sizes);
  if (result.count() == 0) return node.output(0, Tensor::zeros(x.dtype(), result));
  const Value y = part_of(x, part);
  node.output(0, y.id() == x.id() ? node.operand(0) : Operand(y));
}

void slice_by_attributes(Node& node) {
  if (!node.has("starts") || !node.has("ends")) node.fail("expected the attributes starts and ends");
  slice_by(node, node.integers("starts"), node.integers("ends"), node.integers("axes"), {});
}

void slice(Node& node) {
  const Sizes starts = node.known_integers(1), ends = node.known_integers(2);
  const Sizes axes = node.has_input(3) ? node.known_integers(3) : Sizes();
  slice_by(node, starts, ends, axes, node.has_input(4) ? node.known_integers(4) : Sizes());
}

/// True if an f64, as which OneHot takes its values, holds the elements.
bool are_exact(const Tensor& values) {
  const std::vector<double> elements = values.to(DType::f64).to_vector<double>();
  return is_floating(values.dtype()) || std::ranges::all_of(elements, [](double value) { return std::abs(value) <= 0x1p53; });
}

/// Before opset 11, negative indices are no classes.
void one_hot_of(Node& node, bool negative_from_end) {
  const double classes = std::trunc(node.known_number(1));
  if (!(classes >= 0 && classes <= 0x1p53)) node.fail(fmt::format("expected a depth of 0 to 2^53, got {}", classes));
  const auto depth = static_cast<std::int64_t>(classes);
  const Shape values = node.shape(2);
  if (values.count() != 2) node.fail(fmt::format("expected the values [off, on], got {}", values.str()));
  Value indices = node.input(0);
  if (indices.dtype() != DType::i32) indices = cast_to(indices, DType::i64);
  if (!negative_from_end) {
    const Value no_class = constant_like(indices, static_cast<double>(depth));
    indices = ops::where(ops::less(indices, constant_like(indices, 0)), no_class, indices);
  }
  const std::int64_t axis = node.resolve_axis(node.integer("axis", -1), node.rank(0) + 1);
  const Tensor known = node.known_if_constant(2);
  if (known.defined() && are_exact(known)) {
    const std::vector<double> off_on = known.to(DType::f64).to_vector<double>();
    return node.output(0, ops::one_hot(indices, depth, known.dtype(), off_on[0], off_on[1], axis));
  }
  const Value off_on = ops::reshape(node.input(2), Shape{2});
  const Value off = ops::reshape(ops::slice(off_on, 0, 0, 1), Shape{}), on = ops::reshape(ops::slice(off_on, 0, 1, 2), Shape{});
  node.output(0, ops::where(ops::one_hot(indices, depth, DType::boolean, 0, 1, axis), on, off));
}

void top_k_of(Node& node, std::int64_t k, bool largest) {
  const Value x = node.input(0);
  const std::int64_t axis = node.resolve_axis(node.integer("axis", -1), node.rank(0)), n = x.shape()[static_cast<std::size_t>(axis)];
  if (k < 0 || k > n) node.fail(fmt::format("expected 0 to {} elements along axis {} of {}, got k = {}", n, axis, x.shape().str(), k));
  const auto [values, indices] = ops::top_k(ordered(x), k, axis, largest);
  node.output(0, unordered(values, x.dtype()));
  node.output(1, indices);
}

void reverse_sequence(Node& node) {
  const Value x = node.input(0), lengths = node.input(1);
  const Shape shape = x.shape();
  const std::int64_t time_axis = node.integer("time_axis", 0), batch_axis = node.integer("batch_axis", 1);
  if (shape.rank() < 2 || time_axis < 0 || time_axis > 1 || batch_axis != 1 - time_axis) {
    node.fail(fmt::format("expected x of two or more dimensions, and 0 and 1 as time_axis and batch_axis, got {}, {} and {}", shape.str(),
                          time_axis, batch_axis));
  }
  const auto time = static_cast<std::size_t>(time_axis), batch = static_cast<std::size_t>(batch_axis);
  if (lengths.shape() != Shape{shape[batch]}) {
    node.fail(fmt::format("expected a length for each of {} sequences, got {}", shape[batch], lengths.shape().str()));
  }
  if (shape.count() == 0) return node.output(0, node.operand(0));
  // Rows (time, batch) or (batch, time) of x; `from` is the time step that a row is taken from.
  const Value step = positions_along(node, shape[time], time, 2);
  const Value length = ops::reshape(cast_to(lengths, DType::i64), time == 0 ? Shape{1, shape[1]} : Shape{shape[0], 1});
  const Value from = ops::where(ops::less(step, length), ops::sub(ops::sub(length, 1), step), step);
  const Value first = positions_along(node, shape[batch], batch, 2, time == 0 ? 1 : shape[1]);
  const Value row = ops::add(time == 0 ? ops::mul(from, static_cast<double>(shape[1])) : from, first);
  const Shape rows{product_of(node, shape, 0, 2), product_of(node, shape, 2, shape.rank())};
  node.output(0, ops::reshape(ops::gather(ops::reshape(x, rows), row), shape));
}

}  // namespace

const std::vector<Rule>& index_rules() {
  static const std::vector<Rule> rules = {
      {"Gather", 1, gather},
      {"GatherElements", 11, gather_elements},
      {"GatherND", 11, gather_nd},
      {"OneHot", 9, [](Node& node) { one_hot_of(node, false); }},
      {"OneHot", 11, [](Node& node) { one_hot_of(node, true); }},
      {"Pad", 1, pad_by_attributes},
      {"Pad", 11, pad},
      {"ReverseSequence", 10, reverse_sequence},
      {"Scatter", 9, scatter_elements},
      {"ScatterElements", 11, scatter_elements},
      {"ScatterND", 11, scatter_nd},
      {"Slice", 1, slice_by_attributes},
      {"Slice", 10, slice},
      {"TopK", 1, [](Node& node) { top_k_of(node, node.integer("k"), true); }},
      {"TopK", 10, [](Node& node) { top_k_of(node, node.known_integer(1), true); }},
      {"TopK", 11, [](Node& node) { top_k_of(node, node.known_integer(1), node.flag("largest", true)); }},
  };
  return rules;
}

}  // namespace tenon::onnx
