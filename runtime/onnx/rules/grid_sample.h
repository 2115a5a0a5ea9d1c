// SPDX-License-Identifier: Apache-2.0
// onnx/rules/grid_sample.h - GridSample.
#pragma once

#include "onnx/node.h"

namespace tenon::onnx {

void grid_sample(Node& node);

}  // namespace tenon::onnx
