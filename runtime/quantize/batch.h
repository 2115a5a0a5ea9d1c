// SPDX-License-Identifier: Apache-2.0
// quantize/batch.h - the batch size of a model.
#pragma once

#include <cstdint>

#include <tenon/onnx.h>

namespace tenon::quantize {

/// The first dimension of the model's inputs that its file states; 0: it leaves them open.
inline std::int64_t fixed_batch_of(const onnx::Model& model) {
  for (const onnx::ValueType& input : model.inputs()) {
    if (!input.shape.empty() && input.shape[0].is_fixed()) return input.shape[0].size;
  }
  return 0;
}

}  // namespace tenon::quantize
