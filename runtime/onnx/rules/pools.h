// SPDX-License-Identifier: Apache-2.0
// onnx/rules/pools.h - pools of one to three spatial dimensions, with the attributes of a node.
#pragma once

#include <tenon/functions.h>

#include "onnx/node.h"

namespace tenon::onnx {

/// AveragePool of x (N, C, d...), of a floating dtype.
Value average_pool(Node& node, Value x);

/// LpPool of x (N, C, d...), of a floating dtype: (sum |x|^p)^(1/p) of each window, p >= 1.
Value lp_pool(Node& node, Value x, double p);

/// MaxPool of x (N, C, d...) of any number dtype.
Value max_pool(Node& node, Value x);

/// Indices of MaxPool as i64: the position of each maximum in x. `column_major`: positions within a channel count with the first spatial
/// dimension as the innermost one.
struct MaxPoolResult {
  Value y, indices;
};
MaxPoolResult max_pool_with_indices(Node& node, Value x, bool column_major);

}  // namespace tenon::onnx
