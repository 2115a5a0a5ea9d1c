// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/scatter.h - additions to slices of a tensor.
#pragma once

#include "onnx/export/node.h"

namespace tenon::onnx::exporting {

/// x with updates[k] added to x[indices[k]], k over all dimensions of the indices.
inline Term scatter_add(Node& node, const Term& x, const Term& indices, const Term& updates) {
  const Term places = node.op("Unsqueeze", {node.cast(indices, DType::i64), node.integers({-1})});
  return node.op("ScatterND", {x, places, updates}, {text("reduction", "add")});
}

}  // namespace tenon::onnx::exporting
