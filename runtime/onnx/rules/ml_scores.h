// SPDX-License-Identifier: Apache-2.0
// onnx/rules/ml_scores.h - scores and labels of the classifiers and regressors of ai.onnx.ml.
#pragma once

#include <cstdint>
#include <vector>

#include "onnx/node.h"

namespace tenon::onnx {

/// Operand 0 as samples (N, F) in a floating dtype: f64 stays, other dtypes become f32. A list of F is one sample.
Value samples_of(Node& node);
/// Elements of an attribute as a constant of this dtype and shape. Errors: another number of elements.
Value attribute_constant(Node& node, const char* name, DType dtype, const Shape& shape);
/// The scores (N, E) after the attribute post_transform.
Value post_transformed(Node& node, Value scores);
/// The integer class labels of the node, one for each of the `classes`; 0 to classes - 1 if it has none. Errors: strings; another number.
std::vector<std::int64_t> class_labels(Node& node, std::int64_t classes);
/// The label of each index (N).
Value labelled(Node& node, Value indices, const std::vector<std::int64_t>& labels);
/// Number of class labels, of either type.
std::int64_t count_labels(const Node& node);

}  // namespace tenon::onnx
