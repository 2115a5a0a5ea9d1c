// SPDX-License-Identifier: Apache-2.0
// onnx/rules/signal.cpp - DFT and STFT as products with matrices of cosines and sines.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

/// Elements of the largest matrix: that of a one-sided transform of 4096 real samples, or of one of 2061 complex samples.
constexpr std::int64_t max_elements = 17'000'000;
/// Points of a transform, of which few may be read.
constexpr std::int64_t max_points = std::int64_t{1} << 20;

/// cos and sin of 2 pi j / n for j = 0 ... n - 1, exact at multiples of a right angle.
class Circle {
 public:
  explicit Circle(std::int64_t n) : n_(n) {
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t quarters = 4 * j / n;
      if (4 * j % n == 0) {
        constexpr double values[] = {1, 0, -1, 0};
        points_.emplace_back(values[quarters], values[(quarters + 3) % 4]);
      } else {
        const double angle = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
        points_.emplace_back(std::cos(angle), std::sin(angle));
      }
    }
  }
  /// (cos, sin) of 2 pi a b / n.
  std::pair<double, double> at(std::int64_t a, std::int64_t b) const { return points_[static_cast<std::size_t>(a * b % n_)]; }

 private:
  std::int64_t n_;
  std::vector<std::pair<double, double>> points_;
};

/// A transform of n points that reads `samples` of them in `parts` parts (1: real, 2: real and imaginary) and gives `bins` points.
struct Transform {
  std::int64_t n, samples, parts, bins;
  bool inverse = false;  ///< without the factor 1 / n

  /// The share of part c of sample t in part p of bin k.
  double element(const Circle& circle, std::int64_t t, std::int64_t c, std::int64_t k, std::int64_t p) const {
    const auto [cosine, sine] = circle.at(t, k);
    const double turn = inverse ? sine : -sine;
    return c == p ? cosine : c == 0 ? turn : -turn;
  }
};

void check_size(const Node& node, std::int64_t n, std::int64_t rows, std::int64_t columns) {
  if (rows == 0 || columns <= max_elements / rows) return;
  node.unsupported(
      fmt::format("a transform of {} points is a product with a matrix of {} x {}, expected at most {} elements; transform shorter frames",
                  n, rows, columns, max_elements));
}

/// (samples parts, 2 bins) in rows (t, c) and columns (k, p).
Tensor matrix_of(const Transform& transform, DType dtype) {
  const Circle circle(transform.n);
  Tensor matrix = Tensor::empty(DType::f64, {transform.samples * transform.parts, 2 * transform.bins});
  double* out = matrix.data<double>();
  for (std::int64_t t = 0; t < transform.samples; ++t) {
    for (std::int64_t c = 0; c < transform.parts; ++c) {
      for (std::int64_t k = 0; k < transform.bins; ++k) {
        for (std::int64_t p = 0; p < 2; ++p) *out++ = transform.element(circle, t, c, k, p);
      }
    }
  }
  return matrix.to(dtype);
}

/// (2 bins, n) real points from the first bins of their spectrum, rows (k, p): the other bins are the conjugates of these. The imaginary
/// parts of bin 0 and of bin n / 2 have no effect.
Tensor real_inverse_matrix(std::int64_t n, std::int64_t bins, DType dtype) {
  const Circle circle(n);
  Tensor matrix = Tensor::empty(DType::f64, {2 * bins, n});
  double* out = matrix.data<double>();
  for (std::int64_t k = 0; k < bins; ++k) {
    const double weight = k == 0 || 2 * k == n ? 1 : 2;
    for (std::int64_t p = 0; p < 2; ++p) {
      for (std::int64_t t = 0; t < n; ++t) {
        const auto [cosine, sine] = circle.at(k, t);
        *out++ = weight * (p == 0 ? cosine : -sine);
      }
    }
  }
  return matrix.to(dtype);
}

/// An operand that says how many points a transform has.
std::int64_t checked_length(const Node& node, const char* name, std::int64_t length) {
  if (length < 1) node.fail(fmt::format("expected a {} of 1 or more, got {}", name, length));
  if (length > max_points) node.unsupported(fmt::format("expected a {} of at most {}, got {}", name, max_points, length));
  return length;
}

void dft_along(Node& node, std::int64_t given_axis) {
  Value x = node.input(0);
  const Shape shape = x.shape();
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const std::int64_t parts = rank < 2 ? 0 : shape[shape.rank() - 1];
  if (!is_floating(x.dtype()) || (parts != 1 && parts != 2)) {
    node.fail(fmt::format("expected a floating input (..., length, 1 or 2), got {}{}", name_of(x.dtype()), shape.str()));
  }
  const std::int64_t axis = node.resolve_axis(given_axis, rank);
  if (axis == rank - 1) node.fail(fmt::format("expected an axis other than that of real and imaginary parts, got {}", given_axis));
  const bool inverse = node.flag("inverse"), onesided = node.flag("onesided"), to_real = inverse && onesided;
  if (onesided && parts != (inverse ? 2 : 1)) {
    node.fail(fmt::format("expected a {} input of a one-sided {}, got {}", inverse ? "complex" : "real", inverse ? "inverse" : "transform",
                          shape.str()));
  }

  const std::int64_t given = shape[static_cast<std::size_t>(axis)];
  const std::int64_t n = checked_length(node, "dft_length", node.has_input(1) ? node.known_integer(1) : to_real ? 2 * (given - 1) : given);
  const std::int64_t read = std::min(given, to_real ? n / 2 + 1 : n);  // more samples are cut off, missing ones are zeros
  const std::int64_t points = onesided && !inverse ? n / 2 + 1 : n, result_parts = to_real ? 1 : 2;
  Shape result = shape;
  result.set(static_cast<std::size_t>(axis), points);
  result.set(shape.rank() - 1, result_parts);
  if (shape.count() == 0) return node.output(0, filled(node, Tensor::zeros(x.dtype(), {}), result));
  check_size(node, n, read * parts, points * result_parts);

  // the axis becomes the last but one
  std::vector<std::int64_t> permutation;
  for (std::int64_t i = 0; i < rank - 1; ++i) {
    if (i != axis) permutation.push_back(i);
  }
  permutation.insert(permutation.end(), {axis, rank - 1});
  const bool moves = axis != rank - 2;
  if (read < given) x = ops::slice(x, axis, 0, read);
  if (moves) x = ops::transpose(x, permutation);
  const std::int64_t lines = shape.count() / (given * parts);
  const Tensor matrix = to_real ? real_inverse_matrix(n, read, x.dtype())
                                : matrix_of({.n = n, .samples = read, .parts = parts, .bins = points, .inverse = inverse}, x.dtype());
  Value y = ops::gemm(ops::reshape(x, Shape{lines, read * parts}), node.constant(matrix));
  // 1 / n is no factor of the matrix, in which 1 is exact
  if (inverse) y = ops::mul(y, 1 / static_cast<double>(n));
  if (!moves) return node.output(0, ops::reshape(y, result));
  Shape moved;
  for (const std::int64_t i : permutation) moved.push_back(result[static_cast<std::size_t>(i)]);
  std::vector<std::int64_t> back(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) back[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  node.output(0, ops::transpose(ops::reshape(y, moved), back));
}

/// The frames are windows of a convolution whose kernels are the rows of the matrix times the window.
void stft(Node& node) {
  const Value signal = node.input(0);
  const Shape shape = signal.shape();
  const DType dtype = signal.dtype();
  if (!is_floating(dtype) || shape.rank() != 3 || (shape[2] != 1 && shape[2] != 2)) {
    node.fail(fmt::format("expected a floating signal (batch, length, 1 or 2), got {}{}", name_of(dtype), shape.str()));
  }
  const std::int64_t batch = shape[0], length = shape[1], parts = shape[2];
  const std::int64_t step = node.known_integer(1);
  if (step < 1) node.fail(fmt::format("expected a frame_step of 1 or more, got {}", step));
  const Value window = node.optional_input(2);
  if (window.present() && (window.shape().rank() != 1 || window.dtype() != dtype)) {
    node.fail(fmt::format("expected a window of rank 1 and {}, got {}{}", name_of(dtype), name_of(window.dtype()), window.shape().str()));
  }
  const std::int64_t n = checked_length(node, "frame_length",
                                        node.has_input(3)  ? node.known_integer(3)
                                        : window.present() ? window.shape()[0]
                                                           : length);
  if (window.present() && window.shape()[0] != n) {
    node.fail(fmt::format("expected a window of the frame_length {}, got {}", n, window.shape()[0]));
  }
  if (n > length) node.fail(fmt::format("expected a signal of at least one frame of {}, got {}", n, length));
  const std::int64_t bins = node.flag("onesided", true) ? n / 2 + 1 : n, frames = 1 + (length - n) / step;
  if (batch == 0) return node.output(0, Tensor::zeros(dtype, {0, frames, bins, 2}));
  check_size(node, n, n * parts, 2 * bins);

  const Transform transform{.n = n, .samples = n, .parts = parts, .bins = bins};
  const Circle circle(n);
  Tensor kernels = Tensor::empty(DType::f64, {2 * bins, parts, n});
  double* out = kernels.data<double>();
  for (std::int64_t k = 0; k < bins; ++k) {
    for (std::int64_t p = 0; p < 2; ++p) {
      for (std::int64_t c = 0; c < parts; ++c) {
        for (std::int64_t t = 0; t < n; ++t) *out++ = transform.element(circle, t, c, k, p);
      }
    }
  }
  Value weights = node.constant(kernels.to(dtype));
  if (window.present()) weights = ops::mul(weights, window);
  const Value channels = parts == 1 ? ops::reshape(signal, Shape{batch, 1, length}) : ops::transpose(signal, {0, 2, 1});
  ops::ConvOptions options;
  options.strides = {std::min(step, length)};
  const Value spectra = ops::conv1d(channels, weights, {}, options);
  node.output(0, ops::reshape(ops::transpose(spectra, {0, 2, 1}), Shape{batch, frames, bins, 2}));
}

}  // namespace

const std::vector<Rule>& signal_rules() {
  static const std::vector<Rule> rules = {
      {"DFT", 17, [](Node& node) { dft_along(node, node.integer("axis", 1)); }},
      {"DFT", 20, [](Node& node) { dft_along(node, node.has_input(2) ? node.known_integer(2) : -2); }},
      {"STFT", 17, stft},
  };
  return rules;
}

}  // namespace tenon::onnx
