// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/scatter.h - updates of slices of a tensor.
#pragma once

#include "onnx/export/node.h"

namespace tenon::onnx::exporting {

/// x with updates[k] in the place of x[indices[k]], or reduced with it, k over all dimensions of the indices.
inline Term scatter_slices(Node& node, const Term& x, const Term& indices, const Term& updates, const AttributeRecord& reduction) {
  const Term places = node.op("Unsqueeze", {node.cast(indices, DType::i64), node.integers({-1})});
  return node.op("ScatterND", {x, places, updates}, {reduction});
}

}  // namespace tenon::onnx::exporting
