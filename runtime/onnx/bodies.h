// SPDX-License-Identifier: Apache-2.0
// onnx/bodies.h - the bodies of If, Loop and Scan: what their rules and the runner of bodies share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <tenon/tensor.h>

#include "onnx/records.h"

namespace tenon::onnx {

/// The only element of a bool on the host.
bool is_true(const Tensor& condition);

/// The shape of a Loop: operands are the trip count, the condition and the carried values; a body has the index of the iteration, the
/// condition and the carried values as inputs, and the condition, the carried values and rows of scan outputs as outputs.
struct LoopBody {
  const GraphRecord& graph;
  std::size_t carried = 0;
  std::size_t scans = 0;

  /// Errors  a body with other numbers of inputs or outputs; the text does not name the node.
  LoopBody(const NodeRecord& node, const GraphRecord& body);
};

/// A stack of no rows, of the type that a body declares for one. Errors  it declares none.
Tensor empty_stack(const ValueRecord& declared);

}  // namespace tenon::onnx
