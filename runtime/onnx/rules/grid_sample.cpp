// SPDX-License-Identifier: Apache-2.0
// onnx/rules/grid_sample.cpp - images sampled at the positions of a grid.
#include "onnx/rules/grid_sample.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules/dtypes.h"
#include "onnx/rules/numbers.h"
#include "onnx/rules/positions.h"
#include "onnx/rules/sampling.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

enum class Mode { nearest, linear, cubic };
enum class Padding { zeros, border, reflection };

/// Up to opset 19 the modes have other names.
Mode mode_of(const Node& node) {
  const std::string_view mode = node.text("mode", "linear");
  if (mode == "linear" || mode == "bilinear") return Mode::linear;
  if (mode == "cubic" || mode == "bicubic") return Mode::cubic;
  if (mode == "nearest") return Mode::nearest;
  node.fail(fmt::format("expected a mode linear, nearest or cubic, got \"{}\"", mode));
}

Padding padding_of(const Node& node) {
  const std::string_view mode = node.text("padding_mode", "zeros");
  if (mode == "zeros") return Padding::zeros;
  if (mode == "border") return Padding::border;
  if (mode == "reflection") return Padding::reflection;
  node.fail(fmt::format("expected a padding_mode zeros, border or reflection, got \"{}\"", mode));
}

/// Weights of the pixels -1, 0, 1, 2 after a position, x beyond pixel 0.
/// Source  Keys: Cubic convolution interpolation for digital image processing (1981), with a = -3/4.
std::vector<Value> cubic_weights(Value x) {
  constexpr double a = -0.75;
  const auto inner = [](Value t) { return ((a + 2) * t - (a + 3)) * t * t + 1; };
  const auto outer = [](Value t) { return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a; };
  return {outer(x + 1), inner(x), inner(1 - x), outer(2 - x)};
}

/// How positions on an axis of n pixels become pixels and weights.
struct GridAxis {
  std::int64_t n;
  Mode mode;
  Padding padding;
  bool align_corners;

  double lowest() const { return align_corners ? 0 : -0.5; }
  double highest() const { return static_cast<double>(n) - (align_corners ? 1 : 0.5); }

  /// The place, in pixels, of -1 <= x <= 1.
  Value place_of(Value x) const {
    const auto size = static_cast<double>(n);
    return align_corners ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
  }

  /// Reflected at `lowest` and `highest` until it lies between them: a triangular wave.
  Value reflected(Value place) const {
    const double range = highest() - lowest();
    if (range <= 0) return ops::clip(place, 0, 0);
    const Value from_lowest = place - lowest();
    const Value phase = from_lowest - ops::floor(from_lowest / (2 * range)) * (2 * range);
    return range - ops::abs(phase - range) + lowest();
  }

  /// A place in or next to the image with the same sample.
  Value moved(Value place) const {
    if (padding == Padding::reflection) return reflected(place);
    if (padding == Padding::zeros) return place;
    const Value clamped = ops::clip(place, 0, static_cast<double>(n - 1));
    if (mode != Mode::cubic) return clamped;
    const Value outside =
        ops::logical_or(ops::less(place, constant_like(place, lowest())), ops::greater(place, constant_like(place, highest())));
    return ops::where(outside, clamped, place);
  }

  Tap tap(Value pixel, Value weight) const {
    const Value inside = padding == Padding::zeros ? is_pixel(pixel, n) : Value();
    return {pixel_index(padding == Padding::reflection ? reflected(pixel) : pixel, n), weight, inside};
  }

  std::vector<Tap> taps(Value x) const {
    if (mode == Mode::nearest) return {tap(moved(ops::round(place_of(x))), {})};
    const Value place = moved(place_of(x)), pixel = ops::floor(place), beyond = place - pixel;
    if (mode == Mode::linear) return {tap(pixel, 1 - beyond), tap(pixel + 1, beyond)};
    const std::vector<Value> weights = cubic_weights(beyond);
    return {tap(pixel - 1, weights[0]), tap(pixel, weights[1]), tap(pixel + 1, weights[2]), tap(pixel + 2, weights[3])};
  }
};

/// What samples of x are computed in: pixels are copied, interpolated in f32 or f64.
DType sample_dtype(const Node& node, DType x, Mode mode) {
  if (mode == Mode::nearest) return x;
  if (x == DType::boolean) node.unsupported("expected numbers to interpolate, got bool: only the mode nearest copies them");
  return x == DType::f64 || !is_floating(x) ? DType::f64 : DType::f32;
}

}  // namespace

void grid_sample(Node& node) {
  const Value x = node.input(0), grid = node.input(1);
  const Shape shape = x.shape(), at = grid.shape();
  const Mode mode = mode_of(node);
  const Padding padding = padding_of(node);
  const std::size_t dims = shape.rank() < 3 ? 0 : shape.rank() - 2;
  if (dims == 0 || at.rank() != shape.rank() || at[0] != shape[0] || at[at.rank() - 1] != static_cast<std::int64_t>(dims)) {
    node.fail(fmt::format("expected x (N, C, d...) and a grid (N, o..., number of d), got {} and {}", shape.str(), at.str()));
  }
  if (dims > (mode == Mode::cubic ? 2 : 3)) {
    node.unsupported(fmt::format("expected one to three spatial dimensions, two for the mode cubic, got {} in x {}", dims, shape.str()));
  }
  std::vector<std::int64_t> sizes{shape[0], shape[1]};
  sizes.insert(sizes.end(), at.begin() + 1, at.end() - 1);
  const Shape result = shape_of(node, sizes);
  if (result.count() == 0) return node.output(0, Tensor::zeros(x.dtype(), result));
  if (shape.count() == 0) node.fail(fmt::format("expected pixels to sample, got x {}", shape.str()));
  const std::int64_t points = product_of(node, result, 2, result.rank());
  const Value places = ops::reshape(cast_to(grid, grid.dtype() == DType::f64 ? DType::f64 : DType::f32),
                                    Shape{shape[0], points, static_cast<std::int64_t>(dims)});
  // The grid counts the axes from the last one.
  std::vector<std::vector<Tap>> axes;
  for (std::size_t i = 0; i < dims; ++i) {
    const auto column = static_cast<std::int64_t>(dims - 1 - i);
    const Value along = ops::reshape(ops::slice(places, 2, column, column + 1), Shape{shape[0], points});
    axes.push_back(GridAxis{shape[i + 2], mode, padding, node.flag("align_corners")}.taps(along));
  }
  const DType dtype = sample_dtype(node, x.dtype(), mode);
  const Value rows = pixel_rows(node, cast_to(x, dtype));
  const Value first = shape[0] == 1 ? Value() : positions_along(node, shape[0], 0, 2, product_of(node, shape, 2, shape.rank()));
  const auto add = [](Value a, Value b) { return ops::add(a, b); };
  Value samples = sample(node, rows, first, axes, pixel_strides(node, shape), add);
  if (shape[1] != 1) samples = ops::transpose(samples, {0, 2, 1});
  node.output(0, cast_to(ops::reshape(samples, result), x.dtype()));
}

}  // namespace tenon::onnx
