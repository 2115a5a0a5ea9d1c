// SPDX-License-Identifier: Apache-2.0
// onnx/rules/broadcast.cpp - how the operands of elementwise ops are aligned.
#include "onnx/rules/broadcast.h"

#include <fmt/core.h>

namespace tenon::onnx {

OperandPair operand_pair(Node& node) {
  const Value a = node.input(0), b = node.input(1);
  if (a.dtype() != b.dtype()) {
    node.fail(fmt::format("expected operands of one dtype, got {}{} and {}{}", name_of(a.dtype()), a.shape().str(), name_of(b.dtype()),
                          b.shape().str()));
  }
  return {a, b};
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  const std::size_t lead = to.rank() - from.rank();
  for (std::size_t i = 0; i < from.rank(); ++i) {
    if (from[i] != 1 && from[i] != to[lead + i]) return false;
  }
  return true;
}

Value aligned(Value x, std::int64_t axis, std::int64_t rank) {
  Shape shape = x.shape();
  for (std::int64_t end = axis + static_cast<std::int64_t>(shape.rank()); end < rank; ++end) shape.push_back(1);
  return shape == x.shape() ? x : ops::reshape(x, shape);
}

OperandPair legacy_operand_pair(Node& node) {
  OperandPair operands = operand_pair(node);
  const Shape a = operands.a.shape(), b = operands.b.shape();
  if (a == b) return operands;
  if (!node.flag("broadcast")) {
    node.fail(fmt::format("expected operands of one shape, since the attribute 'broadcast' is not 1, got {} and {}", a.str(), b.str()));
  }
  if (b.count() == 1) {
    operands.b = ops::reshape(operands.b, Shape{});
    return operands;
  }
  // Caffe2's default of -1 stands for the last dimensions, as does an absent axis.
  const std::int64_t axis = node.integer("axis", -1), rank = static_cast<std::int64_t>(a.rank());
  if (axis != -1) {
    const std::int64_t first = node.resolve_axis(axis, rank);
    if (first + static_cast<std::int64_t>(b.rank()) > rank)
      node.fail(fmt::format("expected {} to be a part of {} from axis {} on, got too many dimensions", b.str(), a.str(), first));
    operands.b = aligned(operands.b, first, rank);
  }
  if (!broadcasts_to(operands.b.shape(), a)) {
    node.fail(fmt::format("expected the second operand to broadcast to the first one, got {} and {} with axis {}", a.str(), b.str(), axis));
  }
  return operands;
}

}  // namespace tenon::onnx
