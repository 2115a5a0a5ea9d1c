// SPDX-License-Identifier: Apache-2.0
// onnx/rules/pad.cpp - Pad, as slices, padding and copies by index.
#include "onnx/rules/pad.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules/dtypes.h"
#include "onnx/rules/positions.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Sums of a dimension and two widths of this size fit 64 bits.
constexpr std::int64_t max_width = std::int64_t{1} << 60;

/// What constant padding consists of.
struct Fill {
  double value = 0;
  Value computed = {};  ///< instead of `value`, if present: one element
};

/// One axis: first the elements outside [begin, begin + kept) are removed, then `before` and `after` elements are added.
struct PaddedAxis {
  std::int64_t begin = 0, kept = 0, before = 0, after = 0;

  bool grows() const { return before > 0 || after > 0; }
  std::int64_t size() const { return before + kept + after; }
};

PaddedAxis padded_axis(const Node& node, std::int64_t n, std::int64_t before, std::int64_t after) {
  if (std::clamp(before, -max_width, max_width) != before || std::clamp(after, -max_width, max_width) != after) {
    node.fail(fmt::format("expected at most {} elements of padding, got {} and {}", max_width, before, after));
  }
  const std::int64_t size = n + before + after;
  if (size < 0) node.fail(fmt::format("expected padding that removes at most the {} elements of an axis, got {} and {}", n, before, after));
  PaddedAxis axis;
  axis.begin = std::clamp<std::int64_t>(-before, 0, n);
  axis.kept = std::max<std::int64_t>(n - std::max<std::int64_t>(-after, 0) - axis.begin, 0);
  axis.before = std::clamp<std::int64_t>(before, 0, size - axis.kept);
  axis.after = size - axis.kept - axis.before;
  return axis;
}

/// The padding of each axis of x, from widths (begin of each of `axes`, then end of each).
std::vector<PaddedAxis> padded_axes(const Node& node, const Shape& x, const Sizes& widths, const Sizes& axes) {
  if (widths.size() != 2 * axes.size()) {
    node.fail(fmt::format("expected two widths for each of {} axes, got {}", axes.size(), widths.size()));
  }
  std::vector<PaddedAxis> result;
  for (const std::int64_t n : x) result.push_back(padded_axis(node, n, 0, 0));
  std::vector<bool> seen(x.rank(), false);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(node.resolve_axis(axes[i], static_cast<std::int64_t>(x.rank())));
    if (seen[axis]) node.fail(fmt::format("expected distinct axes, got axis {} again", axes[i]));
    seen[axis] = true;
    result[axis] = padded_axis(node, x[axis], widths[i], widths[axes.size() + i]);
  }
  return result;
}

/// Whether an element is one of x, as bool with the sizes of those axes that grow, and 1 for others.
Value kept_elements(Node& node, const std::vector<PaddedAxis>& axes) {
  Value kept;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i].grows()) continue;
    check_listed(node, axes[i].size());
    Sizes sizes(axes.size(), 1);
    sizes[i] = axes[i].size();
    Tensor along = Tensor::zeros(DType::boolean, {axes[i].size()});
    std::fill_n(along.data<bool>() + axes[i].before, axes[i].kept, true);
    const Value value = node.constant(along.reshape(Shape(sizes)));
    kept = kept.present() ? ops::logical_and(kept, value) : value;
  }
  return kept;
}

Value pad_constant(Node& node, Value x, const std::vector<PaddedAxis>& axes, const Fill& fill) {
  std::vector<std::pair<std::int64_t, std::int64_t>> widths;
  for (const PaddedAxis& axis : axes) widths.emplace_back(axis.before, axis.after);
  if (!fill.computed.present()) return ops::pad(x, widths, fill.value);
  const Value value = ops::reshape(cast_to(fill.computed, x.dtype()), Shape{});
  return ops::where(kept_elements(node, axes), ops::pad(x, widths), value);
}

/// The element of an axis that each result is a copy of. `period` is the number of elements until x repeats: the size, or for reflection
/// those from one end to the other and back.
Value copy_by_index(Node& node, Value x, std::size_t i, const PaddedAxis& axis, std::int64_t period) {
  check_listed(node, axis.size());
  Sizes from(static_cast<std::size_t>(axis.size()));
  for (std::size_t j = 0; j < from.size(); ++j) {
    const std::int64_t place = (static_cast<std::int64_t>(j) - axis.before) % period;
    const std::int64_t forward = place < 0 ? place + period : place;
    from[j] = forward < axis.kept ? forward : period - forward;
  }
  return ops::gather(x, node.constant(Node::integers_tensor(from)), static_cast<std::int64_t>(i));
}

Value wrap(Node& node, Value x, std::size_t i, const PaddedAxis& axis) {
  if (axis.before > axis.kept || axis.after > axis.kept) return copy_by_index(node, x, i, axis, axis.kept);
  const auto along = static_cast<std::int64_t>(i);
  std::vector<Value> pieces;
  if (axis.before > 0) pieces.push_back(ops::slice(x, along, axis.kept - axis.before, axis.kept));
  pieces.push_back(x);
  if (axis.after > 0) pieces.push_back(ops::slice(x, along, 0, axis.after));
  return ops::concat(pieces, along);
}

/// Padding with elements of x.
Value pad_with_copies(Node& node, Value x, const std::vector<PaddedAxis>& axes, std::string_view mode) {
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(axes.size(), {0, 0});
  bool pads = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const PaddedAxis& axis = axes[i];
    if (!axis.grows()) continue;
    if (axis.kept == 0) node.fail(fmt::format("expected elements along axis {} to repeat in mode {}, got none", i, mode));
    if (mode == "wrap") {
      x = wrap(node, x, i, axis);
    } else if (mode == "reflect" && std::max(axis.before, axis.after) >= axis.kept) {
      x = copy_by_index(node, x, i, axis, std::max<std::int64_t>(2 * (axis.kept - 1), 1));
    } else {
      widths[i] = {axis.before, axis.after};
      pads = true;
    }
  }
  return pads ? ops::pad(x, widths, 0, mode == "edge" ? ops::PadMode::edge : ops::PadMode::reflect) : x;
}

void pad_by(Node& node, const Sizes& widths, const Sizes& axes, const Fill& fill) {
  const std::string_view mode = node.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    node.fail(fmt::format("expected a mode constant, reflect, edge or wrap, got \"{}\"", mode));
  }
  const Value x = node.input(0);
  const std::vector<PaddedAxis> padded = padded_axes(node, x.shape(), widths, axes);
  Part part(x.shape());
  Sizes sizes;
  for (std::size_t i = 0; i < padded.size(); ++i) {
    part.begins[i] = padded[i].begin;
    part.sizes[i] = padded[i].kept;
    sizes.push_back(padded[i].size());
  }
  const Shape result = shape_of(node, sizes);
  if (result.count() == 0) return node.output(0, Tensor::zeros(x.dtype(), result));
  const bool grows = std::any_of(padded.begin(), padded.end(), [](const PaddedAxis& axis) { return axis.grows(); });
  if (!grows && result == x.shape()) return node.output(0, node.operand(0));
  const Value kept = part_of(x, part);
  if (!grows) return node.output(0, kept);
  node.output(0, mode == "constant" ? pad_constant(node, kept, padded, fill) : pad_with_copies(node, kept, padded, mode));
}

Sizes all_axes(const Node& node) {
  Sizes axes(node.shape(0).rank());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

/// Operand 2. An integer that a double does not hold exactly, which is how the op takes it, is treated as computed.
Fill fill_of(Node& node) {
  Fill fill;
  if (!node.has_input(2) || node.shape(2).count() == 0) return fill;
  if (node.shape(2).count() != 1) node.fail(fmt::format("expected one constant_value, got {}", node.shape(2).str()));
  const Tensor known = node.known_if_constant(2);
  if (known.defined()) fill.value = known.to(DType::f64).reshape({}).item();
  const bool exact = is_floating(node.dtype(2)) || std::abs(fill.value) <= 0x1p53;
  if (!known.defined() || !exact) fill.computed = node.input(2);
  return fill;
}

}  // namespace

void pad_by_attributes(Node& node) {
  const Sizes& widths = node.integers(node.has("paddings") ? "paddings" : "pads");
  pad_by(node, widths, all_axes(node), {node.number("value", 0)});
}

void pad(Node& node) {
  const Sizes widths = node.known_integers(1);
  pad_by(node, widths, node.has_input(3) ? node.known_integers(3) : all_axes(node), fill_of(node));
}

}  // namespace tenon::onnx
