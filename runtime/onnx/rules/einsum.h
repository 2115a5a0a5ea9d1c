// SPDX-License-Identifier: Apache-2.0
// onnx/rules/einsum.h - Einsum of any number of operands.
#pragma once

#include <string_view>
#include <vector>

#include "onnx/node.h"

namespace tenon::onnx {

/// The sum of products that the equation of an Einsum node describes, of operands of one floating dtype.
Value einsum(Node& node, std::string_view equation, const std::vector<Value>& operands);

}  // namespace tenon::onnx
