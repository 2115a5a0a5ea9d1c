// SPDX-License-Identifier: Apache-2.0
// onnx/rules/selection.h - ops whose results have as many elements as their operands' elements say, which have to be known.
#pragma once

#include "onnx/node.h"

namespace tenon::onnx {

/// The elements along an axis, or of all, where a known condition is true.
void compress(Node& node);
/// The positions of the elements of a known operand that are not 0: i64 (rank, n).
void non_zero(Node& node);
/// The distinct slices along an axis, or elements, of a known operand; where each occurs first, which one each slice is, and how often each
/// occurs.
void unique(Node& node);

}  // namespace tenon::onnx
