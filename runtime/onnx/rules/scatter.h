// SPDX-License-Identifier: Apache-2.0
// onnx/rules/scatter.h - rules that change the elements of a tensor that indices select.
#pragma once

#include <cstdint>

#include "onnx/node.h"

namespace tenon::onnx {

/// Scatter and ScatterElements.
void scatter_elements(Node& node);
void scatter_nd(Node& node);

/// cache (B, ..., L, ...) with updates (B, ..., S, ...) at the positions `places` (B, S) along an axis other than the first: those of each
/// sample. A position outside [-L, L) is an error at execution.
Value updated_by_sample(Node& node, Value cache, Value places, Value updates, std::int64_t axis);

}  // namespace tenon::onnx
