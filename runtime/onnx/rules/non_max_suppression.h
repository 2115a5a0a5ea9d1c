// SPDX-License-Identifier: Apache-2.0
// onnx/rules/non_max_suppression.h - NonMaxSuppression, of known boxes and scores.
#pragma once

#include "onnx/node.h"

namespace tenon::onnx {

void non_max_suppression(Node& node);

}  // namespace tenon::onnx
