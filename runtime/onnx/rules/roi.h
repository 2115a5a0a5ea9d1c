// SPDX-License-Identifier: Apache-2.0
// onnx/rules/roi.h - regions of interest of images.
#pragma once

#include "onnx/node.h"

namespace tenon::onnx {

/// `half_pixel`: what the node does if it does not say so, which is so from opset 16 on.
void roi_align(Node& node, bool half_pixel);
void max_roi_pool(Node& node);

}  // namespace tenon::onnx
