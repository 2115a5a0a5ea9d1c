// SPDX-License-Identifier: Apache-2.0
// ops/slice.cpp - slicing and padding; each is the other's gradient.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <algorithm>
#include <numeric>

#include "core/element.h"
#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

using Dims = std::array<std::int64_t, Shape::max_rank>;

const Shape& expected_shape(Inference& at) {
  if (!at.options.shape) at.fail("the result's shape is not given (NodeOptions::shape)");
  const Shape& y = *at.options.shape;
  if (y.rank() != at.shape(0).rank()) at.fail(fmt::format("expected a result of the rank of {}, got {}", at.str(0), y.str()));
  return y;
}

void infer_slice(Inference& at) {
  at.expect_inputs(1, 1);
  const Shape &x = at.shape(0), &y = expected_shape(at);
  auto attributes = at.attributes.as<tenon_attributes_slice>();
  for (std::size_t i = 0; i < Shape::max_rank; ++i) {
    std::int64_t &start = attributes.starts[i], &step = attributes.steps[i];
    if (i < x.rank() && step == 0) at.fail(fmt::format("expected a step other than 0 along axis {} of {}", i, at.str(0)));
    // canonicalise start and step where they do not matter
    const bool reads = i < x.rank() && y.count() > 0;
    if (!reads) start = 0;
    if (!reads || y[i] == 1) step = 1;
    bool fits = i >= x.rank() || y[i] <= x[i];
    if (reads) {
      fits = fits && start >= 0 && start < x[i];
      // the last one; only then is the step smaller than the dimension, so that -step does not overflow
      if (y[i] > 1) fits = fits && step > -x[i] && step < x[i] && y[i] - 1 <= (step > 0 ? x[i] - 1 - start : start) / std::abs(step);
    }
    if (!fits) at.fail(fmt::format("{} elements from {} in steps of {} exceed axis {} of {}", y[i], start, step, i, at.str(0)));
  }
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), y);
}

/// Builds a slice with steps of 1 or -1.
struct Part {
  explicit Part(const Shape& whole) : shape(whole) { std::fill(std::begin(attributes.steps), std::end(attributes.steps), 1); }
  void along(std::size_t axis, std::int64_t begin, std::int64_t size) {
    attributes.starts[axis] = begin;
    shape.set(axis, size);
  }
  void flip(std::size_t axis) {
    attributes.starts[axis] += shape[axis] - 1;
    attributes.steps[axis] = -1;
  }
  Value of(Value x) const {
    if (x.shape() == shape && !flips()) return x;
    return apply_op(TENON_OP_Slice, {x}, Attributes::of(attributes), {.name = {}, .shape = shape});
  }
  bool flips() const {
    return std::any_of(std::begin(attributes.steps), std::end(attributes.steps), [](auto s) { return s < 0; });
  }

  tenon_attributes_slice attributes{};
  Shape shape;
};

/// Pads x with zeros to `shape`, with `before` elements in front.
Value with_zeros(Value x, const Dims& before, const Shape& shape) {
  if (x.shape() == shape) return x;
  tenon_attributes_pad attributes{};
  std::copy(before.begin(), before.end(), attributes.before);
  return apply_op(TENON_OP_Pad, {x}, Attributes::of(attributes), {.name = {}, .shape = shape});
}

/// Inserts step - 1 zeros after each element along an axis, by padding the rows of (outer, n, inner).
Value dilate(Value x, std::size_t axis, std::int64_t step) {
  Shape dilated = x.shape();
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < dilated.rank(); ++i) (i <= axis ? outer : inner) *= dilated[i];
  dilated.set(axis, dilated[axis] * step);
  return ops::reshape(with_zeros(ops::reshape(x, Shape{outer, inner}), {}, {outer, inner * step}), dilated);
}

/// Moves dy to the positions its elements came from; other elements get 0.
void slice_gradient(Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_slice>();
  const Shape& x = at.input(0).shape();
  Value dx = at.dy();
  Dims before{};
  Part ascending(dx.shape());
  for (std::size_t i = 0; i < x.rank() && dx.shape().count() > 0; ++i) {
    before[i] = attributes.starts[i];
    if (attributes.steps[i] > 0) continue;
    ascending.flip(i);
    before[i] += attributes.steps[i] * (dx.shape()[i] - 1);
  }
  dx = ascending.of(dx);
  for (std::size_t i = 0; i < x.rank() && dx.shape().count() > 0; ++i) {
    const std::int64_t step = std::abs(attributes.steps[i]);
    if (step == 1) continue;
    dx = dilate(dx, i, step);
    Part fitting(dx.shape());
    fitting.along(i, 0, std::min(dx.shape()[i], x[i] - before[i]));  // the last zeros may exceed x
    dx = fitting.of(dx);
  }
  at.set(0, with_zeros(dx, before, x));
}

void infer_pad(Inference& at) {
  at.expect_inputs(1, 1);
  const Shape &x = at.shape(0), &y = expected_shape(at);
  auto attributes = at.attributes.as<tenon_attributes_pad>();
  if (attributes.mode > TENON_PAD_EDGE) at.fail(fmt::format("mode is {}, expected constant (0), reflect (1) or edge (2)", attributes.mode));
  for (std::size_t i = 0; i < Shape::max_rank; ++i) {
    std::int64_t& before = attributes.before[i];
    if (i >= x.rank()) before = 0;
    if (i >= x.rank() || (before == 0 && y[i] == x[i])) continue;
    const std::int64_t after = before >= 0 && before <= y[i] ? y[i] - x[i] - before : -1;
    if (before < 0 || after < 0) {
      at.fail(fmt::format("padding of {} and a size of {} are too small for axis {} of {}", before, y[i], i, at.str(0)));
    }
    if (attributes.mode == TENON_PAD_REFLECT && std::max(before, after) >= x[i]) {
      at.fail(fmt::format("reflect repeats at most {} elements on either side of axis {} of {}, got {} and {}",
                          std::max<std::int64_t>(x[i] - 1, 0), i, at.str(0), before, after));
    }
    if (attributes.mode == TENON_PAD_EDGE && x[i] == 0) at.fail(fmt::format("axis {} of {} has no edge to repeat", i, at.str(0)));
  }
  if (attributes.mode != TENON_PAD_CONSTANT) {
    attributes.value = 0;
  } else {
    unsigned char element[16];
    write_element(element, at.dtype(0), attributes.value, "pad");
  }
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), y);
}

/// Adds the gradient of the padding of an axis to the elements that it copies.
Value fold_axis(Value dy, std::size_t axis, std::int64_t before, std::int64_t n, std::uint32_t mode) {
  const std::int64_t after = dy.shape()[axis] - before - n;
  Part middle(dy.shape());
  middle.along(axis, before, n);
  Value dx = middle.of(dy);
  const Shape shape = dx.shape();
  const auto give_back = [&](std::int64_t begin, std::int64_t size, std::int64_t edge, std::int64_t reflected) {
    if (size == 0) return;
    Part copies(dy.shape());
    copies.along(axis, begin, size);
    if (mode == TENON_PAD_REFLECT) copies.flip(axis);
    Value part = copies.of(dy);
    if (mode == TENON_PAD_EDGE) part = ops::reduce_sum(part, {static_cast<std::int64_t>(axis)}, true);
    Dims place{};
    place[axis] = mode == TENON_PAD_EDGE ? edge : reflected;
    dx = ops::add(dx, with_zeros(part, place, shape));
  };
  give_back(0, before, 0, 1);                          // elements 1, 2, ... are mirrored in front
  give_back(before + n, after, n - 1, n - 1 - after);  // and n - 2, n - 3, ... at the end
  return dx;
}

void pad_gradient(Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_pad>();
  const Shape& x = at.input(0).shape();
  Value dx = at.dy();
  if (attributes.mode == TENON_PAD_CONSTANT) {
    Part middle(dx.shape());
    for (std::size_t i = 0; i < x.rank(); ++i) middle.along(i, attributes.before[i], x[i]);
    dx = middle.of(dx);
  } else {
    for (std::size_t i = 0; i < x.rank(); ++i) {
      if (dx.shape()[i] != x[i]) dx = fold_axis(dx, i, attributes.before[i], x[i], attributes.mode);
    }
  }
  at.set(0, dx);
}

}  // namespace

extern const OpRules rules_slice, rules_pad;
const OpRules rules_slice{"y[i, ...] = x[starts + i steps, ...], with the sizes of the result; steps may be negative.", infer_slice,
                          PrecisionClass::inherits, per_element<0>, slice_gradient};
const OpRules rules_pad{
    "y = x padded before and after: a value (constant), x mirrored at its ends without repeating them (reflect), or its last "
    "elements (edge).",
    infer_pad, PrecisionClass::inherits, per_element<0>, pad_gradient};

}  // namespace graph

namespace ops {

Value slice(Value x, std::int64_t axis, std::int64_t begin, std::int64_t end, std::int64_t step) {
  const Shape shape = x.shape();
  const auto i = static_cast<std::size_t>(resolve_axis(axis, shape.rank(), fmt::format("slice: '{}' {}", x.name(), shape.str())));
  if (step == 0) throw Error(fmt::format("slice: expected a step other than 0 along axis {} of '{}' {}", axis, x.name(), shape.str()));
  const std::int64_t n = shape[i];
  // as in Python: resolve negative indices, then clip them to the range that is valid for the direction
  const std::int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? n : n - 1;
  const auto resolved = [&](std::int64_t at) { return std::clamp(at < 0 && at >= -n ? at + n : at < 0 ? lowest : at, lowest, highest); };
  const std::int64_t first = resolved(begin), stop = resolved(end);
  const std::int64_t way = step > 0 ? stop - first : first - stop;
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const auto size = way <= 0 ? 0 : 1 + static_cast<std::int64_t>(static_cast<std::uint64_t>(way - 1) / stride);
  if (size == n && step == 1) return x;
  tenon_attributes_slice attributes{};
  std::fill(std::begin(attributes.steps), std::end(attributes.steps), 1);
  attributes.starts[i] = size == 0 ? 0 : first;
  attributes.steps[i] = step;
  Shape result = shape;
  result.set(i, size);
  return graph::apply_op(TENON_OP_Slice, {x}, Attributes::of(attributes), {.name = {}, .shape = result});
}

Value flip(Value x, const std::vector<std::int64_t>& axes) {
  const Shape shape = x.shape();
  graph::Part flipped(shape);
  for (const std::int64_t axis : axes) {
    const auto i = static_cast<std::size_t>(resolve_axis(axis, shape.rank(), fmt::format("flip: '{}' {}", x.name(), shape.str())));
    if (flipped.attributes.steps[i] < 0) throw Error(fmt::format("flip: axis {} of '{}' {} is repeated", axis, x.name(), shape.str()));
    flipped.flip(i);
  }
  return shape.count() == 0 ? x : flipped.of(x);
}

Value pad(Value x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths, double value, PadMode mode) {
  const Shape shape = x.shape();
  if (widths.size() != shape.rank()) {
    throw Error(fmt::format("pad: expected one pair of widths per dimension of '{}' {}, got {}", x.name(), shape.str(), widths.size()));
  }
  tenon_attributes_pad attributes{};
  attributes.mode = static_cast<std::uint32_t>(mode);
  attributes.value = value;
  Shape padded = shape;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const auto [before, after] = widths[i];
    if (before < 0 || after < 0) {
      throw Error(fmt::format("pad: the widths of axis {} of '{}' {} are ({}, {}), expected 0 or more; use slice to remove elements", i,
                              x.name(), shape.str(), before, after));
    }
    std::int64_t size = 0;
    if (__builtin_add_overflow(before, after, &size) || __builtin_add_overflow(size, shape[i], &size)) {
      throw Error(fmt::format("pad: the widths of axis {} of '{}' {} are ({}, {}), which exceeds the maximum size", i, x.name(),
                              shape.str(), before, after));
    }
    attributes.before[i] = before;
    padded.set(i, size);
  }
  return graph::apply_op(TENON_OP_Pad, {x}, Attributes::of(attributes), {.name = {}, .shape = padded});
}

}  // namespace ops
}  // namespace tenon
