// SPDX-License-Identifier: Apache-2.0
// onnx/rules/broadcast.h - elementwise ops: how their operands are aligned, and rules made of functions of values.
#pragma once

#include <cstdint>

#include <tenon/functions.h>

#include "onnx/node.h"

namespace tenon::onnx {

struct OperandPair {
  Value a, b;
};

/// Operands 0 and 1. The node fails if their dtypes differ.
OperandPair operand_pair(Node& node);

/// The same before opset 7, where b has the shape of a, or with the attribute `broadcast` one element, or the sizes of some neighbouring
/// dimensions of a, of which `axis` is the first; without `axis` they are the last ones. b is returned with dimensions of size 1 appended,
/// so that it broadcasts as in NumPy.
OperandPair legacy_operand_pair(Node& node);

/// True if NumPy broadcasts `from` to `to`.
bool broadcasts_to(const Shape& from, const Shape& to);

/// x with dimensions of size 1 appended, so that its first dimension meets dimension `axis` of a value of `rank` dimensions; axis plus the
/// rank of x is at most `rank`.
Value aligned(Value x, std::int64_t axis, std::int64_t rank);

/// Result 0 is f of operand 0.
template <Value (*f)(Value)>
void unary(Node& node) {
  node.output(0, f(node.input(0)));
}

/// Result 0 is f of operands 0 and 1.
template <Value (*f)(Value, Value)>
void binary(Node& node) {
  const OperandPair operands = operand_pair(node);
  node.output(0, f(operands.a, operands.b));
}

/// The same before opset 7.
template <Value (*f)(Value, Value)>
void legacy_binary(Node& node) {
  const OperandPair operands = legacy_operand_pair(node);
  node.output(0, f(operands.a, operands.b));
}

}  // namespace tenon::onnx
