// SPDX-License-Identifier: Apache-2.0
// onnx/rules/pad.h - Pad.
#pragma once

#include "onnx/node.h"

namespace tenon::onnx {

/// Opset 1 to 10: widths and value are attributes.
void pad_by_attributes(Node& node);
/// From opset 11 on they are operands.
void pad(Node& node);

}  // namespace tenon::onnx
