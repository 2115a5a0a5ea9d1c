// SPDX-License-Identifier: Apache-2.0
// onnx/rules/constant.cpp - results that follow from attributes, shapes and a few known numbers.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

void constant(Node& node) {
  if (node.has("value")) return node.output(0, node.tensor("value"));
  if (node.has("sparse_value")) return node.output(0, node.sparse_tensor("sparse_value"));
  if (node.has("value_int")) return node.output(0, Tensor::scalar(node.integer("value_int")));
  if (node.has("value_ints")) return node.output(0, Node::integers_tensor(node.integers("value_ints")));
  if (node.has("value_float")) return node.output(0, Tensor::scalar(static_cast<float>(node.number("value_float"))));
  if (node.has("value_floats")) return node.output(0, node.numbers_tensor("value_floats"));
  if (node.has("value_string") || node.has("value_strings"))
    node.unsupported("expected numbers, got a constant of strings, which Tenon has no dtype for: export the model without them");
  node.fail("expected one of the attributes value, sparse_value, value_int, value_ints, value_float, value_floats; got none");
}

void constant_of_shape(Node& node) {
  const Tensor value = node.has("value") ? node.tensor("value") : Tensor::zeros(DType::f32, {});
  if (value.count() != 1) node.fail(fmt::format("attribute 'value': expected one element, got {}", value.str()));
  node.output(0, filled(node, value, shape_of(node, node.known_integers(0))));
}

void eye_like(Node& node) {
  const Shape shape = tensor_shape(node, 0);
  if (shape.rank() != 2) node.fail(fmt::format("expected an operand of rank 2, got {}", shape.str()));
  const DType dtype = node.element_type("dtype", node.dtype(0));
  const Operand ones = diagonals(node, shape[0], shape[1], Diagonals::only, node.integer("k", 0));
  node.output(0, ones.is_known() ? Operand(ones.known.to(dtype)) : Operand(cast_to(ones.value, dtype)));
}

void shape(Node& node) {
  const Shape sizes = tensor_shape(node, 0);
  const auto rank = static_cast<std::int64_t>(sizes.rank());
  // As Python's slices: negative positions count from the end, and both are clamped.
  const auto position = [rank](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = position(node.integer("start", 0));
  const std::int64_t end = std::max(start, position(node.integer("end", rank)));
  node.output(0, Node::integers_tensor({sizes.begin() + start, sizes.begin() + end}));
}

void size(Node& node) {
  node.output(0, Tensor::scalar(tensor_shape(node, 0).count()));
}

/// start + i * delta in f64. Opset 27 has an attribute stash_type, which says that f16 and bf16 are computed in f32 or f64: f64 serves all.
Tensor range_of_numbers(Node& node) {
  const double start = node.known_number(0), limit = node.known_number(1), delta = node.known_number(2);
  const double steps = std::ceil((limit - start) / delta);
  if (delta == 0 || std::isnan(steps))
    node.fail(fmt::format("expected numbers and a delta other than 0, got {}, {}, {}", start, limit, delta));
  // The bound comes first: the conversion of a larger number is undefined.
  const auto count = static_cast<std::int64_t>(std::clamp(steps, 0.0, static_cast<double>(max_listed_elements + 1)));
  check_listed(node, count);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<double>(i) * delta;
  return Tensor::of(values, {count});
}

/// The same in i64. Differences and products are unsigned, since they may overflow where the elements do not.
Tensor range_of_integers(Node& node) {
  const std::int64_t start = node.known_integer(0), limit = node.known_integer(1), delta = node.known_integer(2);
  if (delta == 0) node.fail(fmt::format("expected a delta other than 0, got {}, {}, {}", start, limit, delta));
  const auto first = static_cast<std::uint64_t>(start), last = static_cast<std::uint64_t>(limit), step = static_cast<std::uint64_t>(delta);
  const bool rises = delta > 0, empty = rises ? limit <= start : limit >= start;
  const std::uint64_t steps = empty ? 0 : ((rises ? last - first : first - last) - 1) / (rises ? step : 0 - step) + 1;
  const auto count = static_cast<std::int64_t>(std::min(steps, static_cast<std::uint64_t>(max_listed_elements) + 1));
  check_listed(node, count);
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(first + i * step);
  return Node::integers_tensor(values);
}

void range(Node& node) {
  const DType dtype = node.dtype(0);
  node.output(0, (is_floating(dtype) ? range_of_numbers(node) : range_of_integers(node)).to(dtype));
}

/// a - b cos(2 pi i / n) + c cos(4 pi i / n), where n is the size of a periodic window, else 1 less.
void cosine_window(Node& node, double a, double b, double c) {
  const std::int64_t count = node.known_integer(0);
  if (count < 0) node.fail(fmt::format("expected a size of 0 or more, got {}", count));
  check_listed(node, count);
  const std::int64_t period = node.flag("periodic", true) ? count : count - 1;
  // A symmetric window of one element is 0 / 0 in ONNX; it is 1 here, as in PyTorch.
  std::vector<double> values(static_cast<std::size_t>(count), 1.0);
  for (std::size_t i = 0; i < values.size() && period > 0; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(period);
    values[i] = a - b * std::cos(angle) + c * std::cos(2 * angle);
  }
  node.output(0, Tensor::of(values, {count}).to(node.element_type("output_datatype", DType::f32)));
}

/// Triangles over the bins of a spectrum, equally spaced on the mel scale: the result (bins, mels) maps a spectrogram to mel bands.
void mel_weight_matrix(Node& node) {
  const std::int64_t mels = node.known_integer(0), length = node.known_integer(1), rate = node.known_integer(2);
  const double low = node.known_number(3), high = node.known_number(4);
  if (mels < 1 || length < 0 || rate < 1) {
    node.fail(fmt::format("expected num_mel_bins and sample_rate of 1 or more and a dft_length of 0 or more, got {}, {} and {}", mels, rate,
                          length));
  }
  check_listed(node, mels);
  const std::int64_t bins = length / 2 + 1;
  check_listed(node, product_of(node, bins, mels));
  const auto mel_of = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = mel_of(low), step = (mel_of(high) - first) / static_cast<double>(mels + 2);
  std::vector<std::int64_t> points;
  for (std::int64_t i = 0; i < mels + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (first + static_cast<double>(i) * step) / 2595) - 1);
    const double bin = std::floor((static_cast<double>(length) + 1) * hertz / static_cast<double>(rate));
    // The last point is the end of a triangle, which its bin does not belong to.
    if (!(bin >= 0 && bin < static_cast<double>(i > mels ? bins + 1 : bins))) {
      node.fail(fmt::format("expected edges between 0 and half the sample rate of {} Hz, got {} and {}", rate, low, high));
    }
    points.push_back(static_cast<std::int64_t>(bin));
  }
  Tensor weights = Tensor::zeros(DType::f64, {bins, mels});
  for (std::int64_t m = 0; m < mels; ++m) {
    const auto at = static_cast<std::size_t>(m);
    const std::int64_t left = points[at], centre = points[at + 1], right = points[at + 2];
    const auto set = [&](std::int64_t bin, std::int64_t distance, std::int64_t width) {
      weights.data<double>()[bin * mels + m] = static_cast<double>(distance) / static_cast<double>(width);
    };
    if (left == centre) set(centre, 1, 1);
    for (std::int64_t bin = left; bin <= centre && left < centre; ++bin) set(bin, bin - left, centre - left);
    for (std::int64_t bin = centre; bin < right; ++bin) set(bin, right - bin, right - centre);
  }
  node.output(0, weights.to(node.element_type("output_datatype", DType::f32)));
}

}  // namespace

const std::vector<Rule>& constant_rules() {
  static const std::vector<Rule> rules = {
      {"BlackmanWindow", 17, [](Node& node) { cosine_window(node, 0.42, 0.5, 0.08); }},
      {"Constant", 1, constant},
      {"ConstantOfShape", 9, constant_of_shape},
      {"EyeLike", 9, eye_like},
      {"HammingWindow", 17, [](Node& node) { cosine_window(node, 25.0 / 46, 21.0 / 46, 0); }},
      {"HannWindow", 17, [](Node& node) { cosine_window(node, 0.5, 0.5, 0); }},
      {"MelWeightMatrix", 17, mel_weight_matrix},
      {"Range", 11, range},
      {"Shape", 1, shape},
      {"Size", 1, size},
  };
  return rules;
}

}  // namespace tenon::onnx
