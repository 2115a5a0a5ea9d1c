// SPDX-License-Identifier: Apache-2.0
// onnx/rules/non_max_suppression.cpp - boxes that overlap no better one of their class.
#include "onnx/rules/non_max_suppression.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <tenon/tensor.h>

#include "onnx/rules/positions.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

struct Box {
  float left, top, right, bottom;

  float area() const { return (right - left) * (bottom - top); }
};

/// Of the four numbers of a box: two opposite corners (y, x, y, x), or with `center` the centre (x, y), width and height.
Box box_of(std::span<const float> numbers, bool center) {
  if (center) {
    const float width = numbers[2] / 2, height = numbers[3] / 2;
    return {numbers[0] - width, numbers[1] - height, numbers[0] + width, numbers[1] + height};
  }
  const auto [top, bottom] = std::minmax({numbers[0], numbers[2]});
  const auto [left, right] = std::minmax({numbers[1], numbers[3]});
  return {left, top, right, bottom};
}

/// Whether the intersection of two boxes is a larger part of their union than the threshold.
bool overlap(const Box& a, const Box& b, float threshold) {
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (!(width > 0 && height > 0)) return false;
  const float both = width * height, either = a.area() + b.area() - both;
  return a.area() > 0 && b.area() > 0 && either > 0 && both / either > threshold;
}

/// The boxes of one class that are selected, best first; equal scores: the smaller index first. NaN is no score.
std::vector<std::size_t> selected_boxes(std::span<const Box> boxes, std::span<const float> scores, std::int64_t most,
                                        float overlap_threshold, float score_threshold) {
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > score_threshold || (score_threshold == -std::numeric_limits<float>::infinity() && scores[i] == score_threshold)) {
      candidates.push_back(i);
    }
  }
  std::ranges::stable_sort(candidates, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<std::size_t> selected;
  for (const std::size_t candidate : candidates) {
    if (static_cast<std::int64_t>(selected.size()) >= most) break;
    const bool is_suppressed =
        std::ranges::any_of(selected, [&](std::size_t better) { return overlap(boxes[candidate], boxes[better], overlap_threshold); });
    if (!is_suppressed) selected.push_back(candidate);
  }
  return selected;
}

/// Operand i in f32, which the number of selected boxes depends on.
std::vector<float> known_floats(Node& node, std::size_t i) {
  return node.known_to_size(i).to(DType::f32).to_vector<float>();
}

/// The only element of an optional operand.
float threshold(Node& node, std::size_t i, float otherwise) {
  return node.has_input(i) && node.shape(i).count() > 0 ? static_cast<float>(node.known_number(i)) : otherwise;
}

}  // namespace

void non_max_suppression(Node& node) {
  const Shape boxes_shape = tensor_shape(node, 0), scores_shape = tensor_shape(node, 1);
  const bool fits = boxes_shape.rank() == 3 && scores_shape.rank() == 3 && boxes_shape[2] == 4 && scores_shape[0] == boxes_shape[0] &&
                    scores_shape[2] == boxes_shape[1];
  if (!fits) {
    node.fail(
        fmt::format("expected boxes (N, boxes, 4) and scores (N, classes, boxes), got {} and {}", boxes_shape.str(), scores_shape.str()));
  }
  const std::int64_t center = node.integer("center_point_box", 0);
  if (center != 0 && center != 1) node.fail(fmt::format("expected a center_point_box of 0 or 1, got {}", center));
  const std::vector<float> numbers = known_floats(node, 0), scores = known_floats(node, 1);
  const std::int64_t most = node.has_input(2) && node.shape(2).count() > 0 ? node.known_integer(2) : 0;
  const float overlap_threshold = threshold(node, 3, 0), score_threshold = threshold(node, 4, -std::numeric_limits<float>::infinity());
  std::vector<Box> boxes;
  for (std::size_t i = 0; i < numbers.size(); i += 4) boxes.push_back(box_of(std::span(numbers).subspan(i, 4), center == 1));
  const auto count = static_cast<std::size_t>(boxes_shape[1]);
  std::vector<std::int64_t> selected;
  for (std::int64_t image = 0; image < boxes_shape[0] && !boxes.empty(); ++image) {
    for (std::int64_t label = 0; label < scores_shape[1]; ++label) {
      const auto row = static_cast<std::size_t>(image * scores_shape[1] + label);
      const auto of_image = std::span<const Box>(boxes).subspan(static_cast<std::size_t>(image) * count, count);
      const auto of_class = std::span<const float>(scores).subspan(row * count, count);
      for (const std::size_t box : selected_boxes(of_image, of_class, most, overlap_threshold, score_threshold)) {
        selected.insert(selected.end(), {image, label, static_cast<std::int64_t>(box)});
      }
    }
  }
  const auto rows = static_cast<std::int64_t>(selected.size() / 3);
  node.output(0, Tensor::of(selected, {rows, 3}));
}

}  // namespace tenon::onnx
