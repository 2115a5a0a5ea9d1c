// SPDX-License-Identifier: Apache-2.0
// onnx/rules/resize.cpp - resized and sampled images.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/functions.h>
#include <tenon/graph.h>

#include "onnx/rules.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/grid_sample.h"
#include "onnx/rules/positions.h"
#include "onnx/rules/resize_weights.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Larger matrices of weights are mostly zeros: few elements are gathered instead. The product with a matrix spreads a NaN or an infinity
/// of x to all elements of its line.
constexpr std::int64_t max_weight_matrix = std::int64_t{1} << 22;
/// Of indices and weights of an axis.
constexpr std::int64_t max_taps = std::int64_t{1} << 24;

// Resize along one axis, in f32 or f64.

/// True if Tenon's Resize computes the axis: nearest and linear, and coordinates that depend on nothing but the sizes and the scale.
bool is_direct(const ResizedAxis& axis, const ResizeSettings& settings) {
  const bool filters = settings.mode == Interpolation::cubic || (settings.antialias && axis.scale < 1) || settings.exclude_outside;
  if (settings.mode == Interpolation::nearest ? axis.rounds_up(settings) : filters) return false;
  switch (settings.coordinates) {
    case CoordinateMode::half_pixel:
    case CoordinateMode::asymmetric:
      return true;
    case CoordinateMode::align_corners:
    case CoordinateMode::pytorch_half_pixel:
      return axis.length() == static_cast<double>(axis.to);
    default:
      return false;
  }
}

tenon_attributes_resize direct_attributes(const ResizeSettings& settings) {
  tenon_attributes_resize attributes{};
  attributes.mode = settings.mode == Interpolation::nearest ? TENON_RESIZE_NEAREST : TENON_RESIZE_LINEAR;
  attributes.coordinates = settings.coordinates == CoordinateMode::asymmetric           ? TENON_COORDINATES_ASYMMETRIC
                           : settings.coordinates == CoordinateMode::align_corners      ? TENON_COORDINATES_ALIGN_CORNERS
                           : settings.coordinates == CoordinateMode::pytorch_half_pixel ? TENON_COORDINATES_PYTORCH_HALF_PIXEL
                                                                                        : TENON_COORDINATES_HALF_PIXEL;
  attributes.rounding = settings.nearest_mode == NearestMode::floor               ? TENON_ROUND_FLOOR
                        : settings.nearest_mode == NearestMode::ceil              ? TENON_ROUND_CEIL
                        : settings.nearest_mode == NearestMode::round_prefer_ceil ? TENON_ROUND_PREFER_CEIL
                                                                                  : TENON_ROUND_PREFER_FLOOR;
  std::fill(std::begin(attributes.scales), std::end(attributes.scales), 1);
  return attributes;
}

Shape with_size(const Shape& shape, std::int64_t axis, std::int64_t size) {
  Shape result = shape;
  result.set(static_cast<std::size_t>(axis), size);
  return result;
}

/// One axis, or two neighbours, by Tenon's Resize of images (1, sizes before, axes..., sizes after).
Value resize_directly(Node& node, Value x, const std::vector<ResizedAxis>& axes, const ResizeSettings& settings) {
  const Shape shape = x.shape();
  const auto first = static_cast<std::size_t>(axes[0].axis), after = first + axes.size();
  const std::int64_t inner = product_of(node, shape, after, shape.rank());
  tenon_attributes_resize attributes = direct_attributes(settings);
  Shape image = first == 2 ? Shape{shape[0], shape[1]} : Shape{1, product_of(node, shape, 0, first)};
  Shape resized = image, result = shape;
  for (const ResizedAxis& axis : axes) {
    attributes.scales[image.rank()] = axis.scale;
    image.push_back(axis.from);
    resized.push_back(axis.to);
    result = with_size(result, axis.axis, axis.to);
  }
  if (inner > 1) {
    image.push_back(inner);
    resized.push_back(inner);
  }
  if (image != shape) x = ops::reshape(x, image);
  const Value y = node.graph().apply(TENON_OP_Resize, {x}, Attributes::of(attributes), {.name = {}, .shape = resized})[0];
  return resized == result ? y : ops::reshape(y, result);
}

Value constant_as(Node& node, const Tensor& tensor, DType dtype) {
  return node.constant(tensor.to(dtype));
}

/// x (outer, from, inner) with weighted sums along the middle axis.
Value weighted_sums(Node& node, Value x, const ResizedAxis& axis, const ResizeTaps& taps) {
  const DType dtype = x.dtype();
  if (axis.from <= max_weight_matrix / axis.to) {
    Tensor matrix = Tensor::zeros(DType::f64, {axis.to, axis.from});
    double* elements = matrix.data<double>();
    for (std::size_t i = 0; i < taps.weights.size(); ++i) {
      elements[static_cast<std::int64_t>(i) / taps.count * axis.from + taps.indices[i]] += taps.weights[i];
    }
    const Shape shape = x.shape();
    if (shape[2] > 1) return ops::matmul(constant_as(node, matrix, dtype), x);
    const Value rows =
        ops::matmul(ops::reshape(x, Shape{shape[0], axis.from}), constant_as(node, matrix.transpose(0, 1).contiguous(), dtype));
    return ops::reshape(rows, Shape{shape[0], axis.to, 1});
  }
  const Value indices = node.constant(Tensor::of(taps.indices, {axis.to, taps.count}));
  const Value weights = constant_as(node, Tensor::of(taps.weights, {axis.to, taps.count, 1}), dtype);
  return ops::reduce_sum(ops::mul(ops::gather(x, indices, 1), weights), {2});
}

/// One axis by indices and weights that are worked out here.
Value resize_by_taps(Node& node, Value x, const ResizedAxis& axis, const ResizeSettings& settings) {
  const auto along = static_cast<std::size_t>(axis.axis);
  const bool stretches = settings.antialias && axis.scale * static_cast<double>(max_taps) < 1;
  if (stretches || axis.to > max_taps / tap_count(axis, settings)) {
    node.unsupported(fmt::format("expected an axis of at most {} elements and weights, got {} elements and a scale of {}", max_taps,
                                 axis.to, axis.scale));
  }
  const ResizeTaps taps = resize_taps(axis, settings);
  const Shape shape = x.shape();
  const std::int64_t outer = product_of(node, shape, 0, along), inner = product_of(node, shape, along + 1, shape.rank());
  Value y = ops::reshape(x, Shape{outer, axis.from, inner});
  y = settings.mode == Interpolation::nearest ? ops::gather(y, node.constant(Node::integers_tensor(taps.indices)), 1)
                                              : weighted_sums(node, y, axis, taps);
  if (std::ranges::find(taps.extrapolated, true) != taps.extrapolated.end()) {
    Tensor outside = Tensor::empty(DType::boolean, {axis.to, 1});
    std::copy(taps.extrapolated.begin(), taps.extrapolated.end(), outside.data<bool>());
    const Value value = constant_as(node, Tensor::scalar(settings.extrapolation_value), x.dtype());
    y = ops::where(node.constant(outside), value, y);
  }
  return ops::reshape(y, with_size(shape, axis.axis, axis.to));
}

/// x with each of the axes resized, in ascending order.
Value resize_axes(Node& node, Value x, const std::vector<ResizedAxis>& axes, const ResizeSettings& settings) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!is_floating(x.dtype()) || !is_direct(axes[i], settings)) {
      x = resize_by_taps(node, x, axes[i], settings);
      continue;
    }
    const Shape shape = x.shape();
    std::vector<ResizedAxis> together{axes[i]};
    const auto after_next = static_cast<std::size_t>(axes[i].axis) + 2;
    const bool neighbours = i + 1 < axes.size() && axes[i + 1].axis == axes[i].axis + 1 && is_direct(axes[i + 1], settings);
    if (neighbours && product_of(node, shape, after_next, shape.rank()) == 1) together.push_back(axes[++i]);
    x = resize_directly(node, x, together, settings);
  }
  return x;
}

/// Result 0: operand 0 with the axes resized. Axes that do not change are left out of `axes`.
void set_resized(Node& node, const std::vector<ResizedAxis>& axes, const ResizeSettings& settings) {
  const Value x = node.input(0);
  const DType dtype = x.dtype();
  const Shape shape = x.shape();
  Sizes sizes(shape.begin(), shape.end());
  for (const ResizedAxis& axis : axes) sizes[static_cast<std::size_t>(axis.axis)] = axis.to;
  const Shape result = shape_of(node, sizes);
  if (axes.empty()) return node.output(0, node.operand(0));
  if (result.count() == 0) return node.output(0, Tensor::zeros(dtype, result));
  if (shape.count() == 0) node.fail(fmt::format("expected elements to resize, got {} for a result {}", shape.str(), result.str()));
  const bool narrow = dtype == DType::f16 || dtype == DType::bf16;
  const bool copies = settings.mode == Interpolation::nearest && settings.coordinates != CoordinateMode::tf_crop_and_resize;
  const bool direct = std::ranges::all_of(axes, [&](const ResizedAxis& axis) { return is_direct(axis, settings); });
  if (copies || (is_floating(dtype) && (direct || !narrow))) return node.output(0, resize_axes(node, x, axes, settings));
  if (dtype == DType::boolean) node.unsupported("expected numbers to interpolate, got bool: only the mode nearest copies them");
  const Value y = resize_axes(node, ops::cast(x, narrow ? DType::f32 : DType::f64), axes, settings);
  node.output(0, ops::cast(narrow ? y : ops::round(y), dtype));
}

// What a node asks for.

std::int64_t scaled_size(const Node& node, std::int64_t from, double scale) {
  if (!(scale > 0) || !std::isfinite(scale)) node.fail(fmt::format("expected scales > 0, got {}", scale));
  const double size = std::floor(static_cast<double>(from) * scale);
  if (size >= 0x1p62) node.fail(fmt::format("expected sizes below 2^62, got {} elements times {}", from, scale));
  return static_cast<std::int64_t>(size);
}

/// Adds an axis unless it stays as it is.
void add_axis(std::vector<ResizedAxis>& axes, const ResizedAxis& axis, const ResizeSettings& settings) {
  const bool crops = settings.coordinates == CoordinateMode::tf_crop_and_resize;
  const bool whole = !crops || (std::abs(axis.roi_start) < 1e-9 && std::abs(axis.roi_end - 1) < 1e-9);
  if (axis.from != axis.to || std::abs(axis.scale - 1) > 1e-9 || !whole) axes.push_back(axis);
}

/// All axes by scales.
void resize_by_scales(Node& node, const std::vector<double>& scales, const ResizeSettings& settings) {
  const Shape shape = node.input(0).shape();
  if (scales.size() != shape.rank())
    node.fail(fmt::format("expected a scale for each dimension of {}, got {}", shape.str(), scales.size()));
  std::vector<ResizedAxis> axes;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    add_axis(axes, {static_cast<std::int64_t>(i), shape[i], scaled_size(node, shape[i], scales[i]), scales[i]}, settings);
  }
  set_resized(node, axes, settings);
}

template <class T, std::size_t n>
T choice(const Node& node, const char* attribute, const std::pair<std::string_view, T> (&names)[n]) {
  const std::string_view given = node.text(attribute, names[0].first);
  for (const auto& [name, value] : names) {
    if (given == name) return value;
  }
  std::string expected;
  for (const auto& [name, value] : names) expected += fmt::format("{}{}", expected.empty() ? "" : ", ", name);
  node.fail(fmt::format("attribute '{}': expected one of {}, got \"{}\"", attribute, expected, given));
}

Interpolation mode_of(const Node& node) {
  return choice<Interpolation>(node, "mode",
                               {{"nearest", Interpolation::nearest},
                                {"linear", Interpolation::linear},
                                {"bilinear", Interpolation::linear},
                                {"cubic", Interpolation::cubic}});
}

/// Upsample, and Resize of opset 10: i / scale, rounded down for the mode nearest, except where Resize makes an axis shorter.
ResizeSettings legacy_settings(const Node& node) {
  ResizeSettings settings;
  settings.mode = mode_of(node);
  if (settings.mode == Interpolation::cubic)
    node.fail("expected a mode nearest or linear, got \"cubic\", which Resize has from opset 11 on");
  settings.coordinates = CoordinateMode::asymmetric;
  settings.nearest_mode = NearestMode::floor;
  return settings;
}

ResizeSettings settings_of(const Node& node) {
  ResizeSettings settings;
  settings.mode = mode_of(node);
  settings.coordinates = choice<CoordinateMode>(node, "coordinate_transformation_mode",
                                                {{"half_pixel", CoordinateMode::half_pixel},
                                                 {"half_pixel_symmetric", CoordinateMode::half_pixel_symmetric},
                                                 {"pytorch_half_pixel", CoordinateMode::pytorch_half_pixel},
                                                 {"align_corners", CoordinateMode::align_corners},
                                                 {"asymmetric", CoordinateMode::asymmetric},
                                                 {"tf_half_pixel_for_nn", CoordinateMode::tf_half_pixel_for_nn},
                                                 {"tf_crop_and_resize", CoordinateMode::tf_crop_and_resize}});
  settings.nearest_mode = choice<NearestMode>(node, "nearest_mode",
                                              {{"round_prefer_floor", NearestMode::round_prefer_floor},
                                               {"round_prefer_ceil", NearestMode::round_prefer_ceil},
                                               {"floor", NearestMode::floor},
                                               {"ceil", NearestMode::ceil}});
  settings.cubic_coeff_a = node.number("cubic_coeff_a", -0.75);
  settings.exclude_outside = node.flag("exclude_outside");
  settings.antialias = node.flag("antialias");
  settings.extrapolation_value = node.number("extrapolation_value", 0);
  if (!std::isfinite(settings.cubic_coeff_a)) node.fail("attribute 'cubic_coeff_a': expected a finite number");
  return settings;
}

/// The axes that scales, sizes and regions refer to.
Sizes axes_of(const Node& node, std::int64_t rank) {
  if (!node.has("axes")) {
    Sizes all(static_cast<std::size_t>(rank));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  Sizes axes = node.integers("axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i] = node.resolve_axis(axes[i], rank);
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) != axes.begin() + static_cast<std::ptrdiff_t>(i)) {
      node.fail(fmt::format("expected distinct axes, got axis {} again", axes[i]));
    }
  }
  return axes;
}

/// One scale for all axes, the smallest or largest quotient of the sizes, which is rounded to sizes again.
void keep_aspect_ratio(const Node& node, std::vector<ResizedAxis>& axes) {
  enum class Policy { stretch, not_larger, not_smaller };
  const Policy policy =
      choice<Policy>(node, "keep_aspect_ratio_policy",
                     {{"stretch", Policy::stretch}, {"not_larger", Policy::not_larger}, {"not_smaller", Policy::not_smaller}});
  if (policy == Policy::stretch || axes.empty()) return;
  double scale = axes[0].scale;
  for (const ResizedAxis& axis : axes) {
    scale = policy == Policy::not_larger ? std::min(scale, axis.scale) : std::max(scale, axis.scale);
  }
  for (ResizedAxis& axis : axes) {
    const double size = std::floor(scale * static_cast<double>(axis.from) + 0.5);
    if (size >= 0x1p62) node.fail(fmt::format("expected sizes below 2^62, got {} elements times {}", axis.from, scale));
    axis.scale = scale;
    axis.to = static_cast<std::int64_t>(size);
  }
}

/// Resize from opset 11 on: x, roi, scales, sizes.
void resize(Node& node) {
  const ResizeSettings settings = settings_of(node);
  const Shape shape = node.input(0).shape();
  const Sizes along = axes_of(node, static_cast<std::int64_t>(shape.rank()));
  const auto given = [&](std::size_t i) { return node.has_input(i) && node.shape(i).count() > 0; };
  if (given(2) && given(3)) node.fail("expected scales or sizes, got both");
  if (!given(2) && !given(3) && !along.empty()) node.fail("expected scales or sizes, got neither");
  const std::vector<double> scales = given(2) ? node.known_numbers(2) : std::vector<double>();
  const Sizes sizes = given(3) ? node.known_integers(3) : Sizes();
  const bool crops = settings.coordinates == CoordinateMode::tf_crop_and_resize;
  const std::vector<double> roi = crops ? node.known_numbers(1) : std::vector<double>(2 * along.size(), 0.0);
  if (std::max(scales.size(), sizes.size()) != along.size() || roi.size() != 2 * along.size()) {
    node.fail(
        fmt::format("expected a scale or a size for each of {} axes, and two coordinates of a region, got {} scales, {} sizes and {} "
                    "coordinates",
                    along.size(), scales.size(), sizes.size(), roi.size()));
  }
  std::vector<ResizedAxis> axes;
  for (std::size_t i = 0; i < along.size(); ++i) {
    const std::int64_t from = shape[static_cast<std::size_t>(along[i])];
    ResizedAxis axis{along[i], from, 0, 1};
    if (sizes.empty()) {
      axis.scale = scales[i];
      axis.to = scaled_size(node, from, axis.scale);
    } else {
      if (sizes[i] < 0 || (sizes[i] > 0 && from == 0)) {
        node.fail(fmt::format("expected sizes that axes of {} can have, got {} for axis {}", shape.str(), sizes[i], along[i]));
      }
      axis.to = sizes[i];
      axis.scale = from == 0 ? 1 : static_cast<double>(sizes[i]) / static_cast<double>(from);
    }
    if (crops) {
      axis.roi_start = roi[i];
      axis.roi_end = roi[along.size() + i];
      if (!std::isfinite(axis.roi_start) || !std::isfinite(axis.roi_end)) node.fail("expected finite coordinates of a region");
    }
    axes.push_back(axis);
  }
  if (!sizes.empty()) keep_aspect_ratio(node, axes);
  std::ranges::sort(axes, {}, &ResizedAxis::axis);
  std::vector<ResizedAxis> changed;
  for (const ResizedAxis& axis : axes) add_axis(changed, axis, settings);
  set_resized(node, changed, settings);
}

void resize_10(Node& node) {
  ResizeSettings settings = legacy_settings(node);
  settings.shrinks_by_ceil = true;
  resize_by_scales(node, node.known_numbers(1), settings);
}

void upsample_9(Node& node) {
  resize_by_scales(node, node.known_numbers(1), legacy_settings(node));
}

void upsample_7(Node& node) {
  const std::vector<float>& scales = node.numbers("scales");
  resize_by_scales(node, {scales.begin(), scales.end()}, legacy_settings(node));
}

void upsample_1(Node& node) {
  resize_by_scales(node, {1, 1, node.number("height_scale"), node.number("width_scale")}, legacy_settings(node));
}

/// The positions of n pixels from -1 to 1: of their centres, or with `align_corners` of the first and the last one at the ends.
Tensor normalised_positions(const Node& node, std::int64_t n, bool align_corners) {
  check_listed(node, n);
  Tensor positions = Tensor::empty(DType::f64, {n});
  for (std::int64_t i = 0; i < n; ++i) {
    const auto place = static_cast<double>(i), count = static_cast<double>(n);
    positions.data<double>()[i] = align_corners ? (n == 1 ? -1.0 : -1 + place * (2 / (count - 1))) : (2 * place + 1) / count - 1;
  }
  return positions;
}

/// Products of theta (N, s, s + 1) with the homogeneous positions (x, y, 1) or (x, y, z, 1) of the pixels.
void affine_grid(Node& node) {
  const Value theta = node.input(0);
  const Sizes size = node.known_integers(1);
  if (size.size() != 4 && size.size() != 5) {
    node.fail(fmt::format("expected a size (N, C, H, W) or (N, C, D, H, W), got {} sizes", size.size()));
  }
  const Shape image = shape_of(node, size);
  const std::size_t dims = image.rank() - 2;
  const auto coordinates = static_cast<std::int64_t>(dims);
  if (theta.shape() != Shape{image[0], coordinates, coordinates + 1}) {
    node.fail(fmt::format("expected theta ({},{},{}) for the size {}, got {}", image[0], dims, dims + 1, image.str(), theta.shape().str()));
  }
  Sizes result(image.begin() + 2, image.end());
  result.insert(result.begin(), image[0]);
  result.push_back(coordinates);
  if (shape_of(node, result).count() == 0) return node.output(0, Tensor::zeros(theta.dtype(), shape_of(node, result)));
  const auto products = [&](Value matrices) {
    // Column i of the matrices is multiplied by x, y or z, which vary along the last axis of the image, the one before, and so on.
    const auto column = [&](std::size_t i) {
      Sizes broadcast(dims + 2, 1);
      broadcast[0] = image[0];
      broadcast[dims + 1] = coordinates;
      return ops::reshape(ops::slice(matrices, 2, static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1), Shape(broadcast));
    };
    Value grid = column(dims);
    for (std::size_t i = 0; i < dims; ++i) {
      const std::size_t axis = dims - i;
      Sizes along(dims + 2, 1);
      along[axis] = image[axis + 1];
      const Tensor positions = normalised_positions(node, image[axis + 1], node.flag("align_corners")).reshape(Shape(along));
      grid = ops::add(grid, ops::mul(constant_as(node, positions, matrices.dtype()), column(i)));
    }
    return grid;
  };
  node.output(0, computed_in(theta.dtype() == DType::f64 ? DType::f64 : DType::f32, products, theta));
}

}  // namespace

const std::vector<Rule>& resize_rules() {
  static const std::vector<Rule> rules = {
      {"AffineGrid", 20, affine_grid}, {"GridSample", 16, grid_sample}, {"Resize", 10, resize_10},   {"Resize", 11, resize},
      {"Upsample", 1, upsample_1},     {"Upsample", 7, upsample_7},     {"Upsample", 9, upsample_9},
  };
  return rules;
}

}  // namespace tenon::onnx
