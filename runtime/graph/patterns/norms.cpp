// SPDX-License-Identifier: Apache-2.0
// graph/patterns/norms.cpp - layer and RMS norms in pieces.
#include <tenon/functions.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/patterns/records.h"

namespace tenon::graph::patterns {
namespace {

/// The first axis of a mean over the last dimensions that keeps them.
std::optional<double> first_of_last_axes(const Net& net, const NodeInfo& node) {
  const auto& attributes = node.attributes.as<tenon_attributes_axes>();
  const auto rank = static_cast<std::int64_t>(net.shape(node.inputs[0]).rank());
  if (attributes.count == 0 || attributes.keepdims == 0) return std::nullopt;
  // axes ascend
  const std::int64_t first = attributes.axes[0];
  return first == rank - attributes.count ? std::optional(static_cast<double>(first)) : std::nullopt;
}

Pattern mean(const Pattern& x) {
  return op(TENON_OP_ReduceMean, {x}, Role::axis, first_of_last_axes);
}

/// 1 / sqrt(mean(x^2) + epsilon): by Sqrt and Div, Reciprocal, Rsqrt or Pow.
Pattern inverse_root_mean_square(const Pattern& x) {
  return pow(mean(pow(x, 2)) + number(Role::epsilon), -0.5);
}

Pattern layer_norm() {
  const Pattern x = any(Role::x), scale = any(Role::scale), bias = any(Role::bias);
  const Pattern centred = x - mean(x), inverse = inverse_root_mean_square(centred);
  // tf.nn.batch_normalization computes a factor and a shift
  return either({centred * inverse * maybe(scale) + maybe(bias), x * inverse * scale - mean(x) * inverse * scale + maybe(bias),
                 x * inverse - mean(x) * inverse + maybe(bias)});
}

Pattern rms_norm() {
  const Pattern x = any(Role::x);
  return x * inverse_root_mean_square(x) * maybe(any(Role::scale));
}

/// The dimensions that are normalised.
Shape line_of(const Match& match) {
  return Shape(match.shape(Role::x).dims().subspan(static_cast<std::size_t>(match.number(Role::axis))));
}

/// The shape without leading dimensions of size 1 beyond `rank`; nothing if there are others.
std::optional<Shape> without_leading(const Shape& shape, std::size_t rank) {
  const std::size_t leading = shape.rank() > rank ? shape.rank() - rank : 0;
  for (std::size_t i = 0; i < leading; ++i) {
    if (shape[i] != 1) return std::nullopt;
  }
  return Shape(shape.dims().subspan(leading));
}

/// True if a scale or bias, if there is one, is the same for all lines.
bool is_of_line(const Match& match, Role role, const Shape& line) {
  if (!match.has(role)) return true;
  const std::optional<Shape> shape = without_leading(match.shape(role), line.rank());
  if (!shape) return false;
  for (std::size_t i = 0; i < shape->rank(); ++i) {
    if ((*shape)[i] != 1 && (*shape)[i] != line[line.rank() - shape->rank() + i]) return false;
  }
  return true;
}

/// A scale or bias in the shape of a line; absent if there is none.
Value of_line(const Match& match, Role role, const Shape& line) {
  if (!match.has(role)) return {};
  const Value value = match.value(role);
  const Shape from = value.shape(), inner = *without_leading(from, line.rank());
  const Value last = inner == from ? value : ops::reshape(value, inner);
  return inner == line ? last : ops::expand(last, line);
}

bool accepts(Match& match) {
  if (match.shape(Role::x) != match.net.shape(match.result())) return false;
  const Shape line = line_of(match);
  const double epsilon = match.number(Role::epsilon);
  return line.count() > 0 && epsilon >= 0 && std::isfinite(epsilon) && is_of_line(match, Role::scale, line) &&
         is_of_line(match, Role::bias, line);
}

std::int64_t axis_of(const Match& match) {
  return static_cast<std::int64_t>(match.number(Role::axis));
}

Value as_layer_norm(const Match& match) {
  const Shape line = line_of(match);
  const Value scale = of_line(match, Role::scale, line), bias = of_line(match, Role::bias, line);
  return ops::layer_norm(match.value(Role::x), scale, bias, axis_of(match), match.number(Role::epsilon));
}

Value as_rms_norm(const Match& match) {
  return ops::rms_norm(match.value(Role::x), of_line(match, Role::scale, line_of(match)), axis_of(match), match.number(Role::epsilon));
}

}  // namespace

const std::vector<Record>& norm_records() {
  static const std::vector<Record> records = {
      {"LayerNormalization", "PyTorch and Paddle below opset 17 (ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add), Keras",
       layer_norm(), accepts, as_layer_norm},
      {"RMSNormalization", "Llama, T5 and their relatives below opset 23", rms_norm(), accepts, as_rms_norm},
  };
  return records;
}

}  // namespace tenon::graph::patterns
