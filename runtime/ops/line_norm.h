// SPDX-License-Identifier: Apache-2.0
// ops/line_norm.h - shared parts of layer and RMS norm, which normalise lines: the dimensions from an axis on.
#pragma once

#include <fmt/format.h>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon::graph {

/// Shapes around the axis of tenon_attributes_layer_norm.
struct Lines {
  Shape line;        ///< shape of scale and bias
  Shape statistics;  ///< shape of x with 1 for each dimension of a line
};

/// Resolves the axis. Errors: a line without elements, which has no mean.
inline Lines lines_of(Inference& at, std::size_t x) {
  at.expect_floating(x);
  auto attributes = at.attributes.as<tenon_attributes_layer_norm>();
  attributes.axis = at.axis(attributes.axis, x);
  if (!(attributes.epsilon >= 0)) at.fail(fmt::format("epsilon is {}, expected epsilon >= 0", attributes.epsilon));
  at.attributes = Attributes::of(attributes);
  Lines lines;
  for (std::size_t i = 0; i < at.shape(x).rank(); ++i) {
    const bool inside = static_cast<std::int64_t>(i) >= attributes.axis;
    if (inside) lines.line.push_back(at.shape(x)[i]);
    lines.statistics.push_back(inside ? 1 : at.shape(x)[i]);
  }
  if (lines.line.count() == 0) at.fail(fmt::format("expected elements in {} from axis {} on, got none", at.str(x), attributes.axis));
  return lines;
}

/// Checks that operand i, if present, has x's dtype and this shape.
inline void expect_shape(const Inference& at, std::size_t x, std::size_t i, const Shape& shape, const char* why) {
  if (!at.has(i)) return;
  at.expect_same_dtype(x, i);
  if (at.shape(i) != shape) at.fail(fmt::format("expected {} {} of {}, got {}", shape.str(), why, at.str(x), at.str(i)));
}

/// Number of elements per line of x.
inline double line_length(const Shape& x, std::int64_t axis) {
  std::int64_t n = 1;
  for (auto i = static_cast<std::size_t>(axis); i < x.rank(); ++i) n *= x[i];
  return static_cast<double>(n);
}

}  // namespace tenon::graph
