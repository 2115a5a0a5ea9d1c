// SPDX-License-Identifier: Apache-2.0
// layers/onnx_part.h - the part of an ONNX file that a layer is.
#pragma once

#include <string>
#include <vector>

#include <tenon/layers.h>
#include <tenon/onnx.h>

#include "onnx/source.h"

namespace tenon::layers {

/// The part of a file that a layer `onnx` is.
struct OnnxPart {
  std::vector<std::string> outputs;
  std::vector<onnx::ValueType> inputs;
  std::vector<onnx::ValueType> constants;  ///< the other inputs
};
/// `is_model`: the layer may have several inputs and outputs. Errors  name the file, what it has and the key that chooses.
OnnxPart part_of(const onnx::Source& source, const Onnx& layer, bool is_model);

/// Their names, in order.
std::vector<std::string> names_of(const std::vector<onnx::ValueType>& values);

}  // namespace tenon::layers
