// SPDX-License-Identifier: Apache-2.0
// onnx/rules/scatter.h - rules that change the elements of a tensor that indices select.
#pragma once

#include "onnx/node.h"

namespace tenon::onnx {

/// Scatter and ScatterElements.
void scatter_elements(Node& node);
void scatter_nd(Node& node);

}  // namespace tenon::onnx
