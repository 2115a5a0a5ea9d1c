// SPDX-License-Identifier: Apache-2.0
// onnx/rules/block_quantized.h - the ops of com.microsoft on weights of 2, 4 or 8 bits with a scale for each block.
#pragma once

#include "onnx/node.h"

namespace tenon::onnx {

void matmul_nbits(Node& node);
void gather_block_quantized(Node& node);

}  // namespace tenon::onnx
