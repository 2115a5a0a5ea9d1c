// SPDX-License-Identifier: Apache-2.0
#include "onnx/rules/ml_scores.h"

#include <fmt/core.h>

#include <numeric>
#include <string_view>

#include <tenon/functions.h>

#include "onnx/rules/dtypes.h"

namespace tenon::onnx {
namespace {

/// softmax of the scores that are not 0, as the reference implementation of ONNX has it: zeros have exp(-max) times 0 as their exponential.
Value softmax_of_others(Node& node, Value scores) {
  const Value zero = node.scalar(scores.dtype(), 0);
  const Value highest = ops::reduce_max(scores, {1}, true);
  const Value is_zero = ops::less_equal(ops::abs(scores), node.scalar(scores.dtype(), 1e-7));
  const Value terms = ops::where(is_zero, ops::mul(scores, ops::exp(ops::neg(highest))), ops::exp(ops::sub(scores, highest)));
  const Value sum = ops::reduce_sum(terms, {1}, true);
  const Value empty = ops::equal(sum, zero);
  return ops::where(empty, node.scalar(scores.dtype(), 0.5), ops::div(terms, ops::where(empty, node.scalar(scores.dtype(), 1), sum)));
}

}  // namespace

Value samples_of(Node& node) {
  const Value x = node.input(0);
  const Shape shape = x.shape();
  if (shape.rank() != 1 && shape.rank() != 2) node.fail(fmt::format("expected samples (N, F) or (F), got {}", shape.str()));
  const Value samples = cast_to(x, x.dtype() == DType::f64 ? DType::f64 : DType::f32);
  return shape.rank() == 2 ? samples : ops::reshape(samples, Shape{1, shape[0]});
}

Value attribute_constant(Node& node, const char* name, DType dtype, const Shape& shape) {
  const std::vector<float>& elements = node.numbers(name);
  if (static_cast<std::int64_t>(elements.size()) != shape.count()) {
    node.fail(fmt::format("attribute '{}': expected {} numbers, got {}", name, shape.count(), elements.size()));
  }
  return node.constant(Tensor::of(elements, shape).to(dtype));
}

Value post_transformed(Node& node, Value scores) {
  const std::string_view name = node.text("post_transform", "NONE");
  if (name == "NONE") return scores;
  if (name == "LOGISTIC") return ops::sigmoid(scores);
  if (name == "SOFTMAX") return ops::softmax(scores, 1);
  if (name == "SOFTMAX_ZERO") return softmax_of_others(node, scores);
  node.unsupported(fmt::format("expected post_transform NONE, LOGISTIC, SOFTMAX or SOFTMAX_ZERO, got {}", name));
}

std::int64_t count_labels(const Node& node) {
  return static_cast<std::int64_t>(node.integers("classlabels_ints").size() + node.texts("classlabels_strings").size());
}

std::vector<std::int64_t> class_labels(Node& node, std::int64_t classes) {
  if (!node.texts("classlabels_strings").empty()) {
    node.unsupported(
        "expected integer class labels, got strings, which are no tensors here: train with integer classes, or read only the "
        "scores");
  }
  std::vector<std::int64_t> labels = node.integers("classlabels_ints");
  if (labels.empty()) {
    labels.resize(static_cast<std::size_t>(classes));
    std::iota(labels.begin(), labels.end(), 0);
  }
  if (static_cast<std::int64_t>(labels.size()) != classes) {
    node.fail(fmt::format("expected {} class labels, got {}", classes, labels.size()));
  }
  return labels;
}

Value labelled(Node& node, Value indices, const std::vector<std::int64_t>& labels) {
  return ops::gather(node.constant(Node::integers_tensor(labels)), indices);
}

}  // namespace tenon::onnx
