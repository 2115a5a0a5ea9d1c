// SPDX-License-Identifier: Apache-2.0
// onnx/rules/resize_weights.cpp - coordinates and weights of resized axes.
#include "onnx/rules/resize_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tenon::onnx {
namespace {

/// The place in x that element i of the result maps to.
double coordinate(std::int64_t i, const ResizedAxis& axis, CoordinateMode mode) {
  const double position = static_cast<double>(i), from = static_cast<double>(axis.from), length = axis.length();
  switch (mode) {
    case CoordinateMode::half_pixel_symmetric:
      return from / 2 * (1 - static_cast<double>(axis.to) / length) + (position + 0.5) / axis.scale - 0.5;
    case CoordinateMode::pytorch_half_pixel:  // the schema's 0 for one element; the reference of ONNX 1.23 has -0.5
      return length > 1 ? (position + 0.5) / axis.scale - 0.5 : 0.0;
    case CoordinateMode::align_corners:
      return length == 1 ? 0.0 : position * (from - 1) / (length - 1);
    case CoordinateMode::asymmetric:
      return position / axis.scale;
    case CoordinateMode::tf_half_pixel_for_nn:
      return (position + 0.5) / axis.scale;
    case CoordinateMode::tf_crop_and_resize: {
      const double extent = axis.roi_end - axis.roi_start;
      const double inside = length == 1 ? extent * (from - 1) / 2 : position * extent * (from - 1) / (length - 1);
      return inside + axis.roi_start * (from - 1);
    }
    default:
      return (position + 0.5) / axis.scale - 0.5;
  }
}

double nearest(double x, NearestMode mode) {
  switch (mode) {
    case NearestMode::floor:
      return std::floor(x);
    case NearestMode::ceil:
      return std::ceil(x);
    case NearestMode::round_prefer_ceil:
      return std::floor(x + 0.5);
    default:
      return std::ceil(x - 0.5);
  }
}

/// The filter at a distance from the coordinate, in elements of x.
/// Source  Keys: Cubic convolution interpolation for digital image processing (1981), equation (4), for the cubic one.
double filter(double distance, const ResizeSettings& settings) {
  const double x = std::abs(distance), a = settings.cubic_coeff_a;
  if (settings.mode == Interpolation::linear) return std::max(1 - x, 0.0);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
}

/// What antialiasing stretches the filter by is 1 / stretch.
double stretch(const ResizedAxis& axis, const ResizeSettings& settings) {
  return settings.antialias ? std::min(axis.scale, 1.0) : 1.0;
}

/// The first element of a result's filter, relative to the last element before the coordinate.
std::int64_t first_tap(const ResizedAxis& axis, const ResizeSettings& settings) {
  const double radius = settings.mode == Interpolation::cubic ? 2 : 1;
  return static_cast<std::int64_t>(std::floor(-radius / stretch(axis, settings))) + 1;
}

}  // namespace

double ResizedAxis::length() const {
  const double exact = scale * static_cast<double>(from), whole = static_cast<double>(to);
  return std::abs(exact - whole) <= 1e-9 * whole ? whole : exact;
}

std::int64_t tap_count(const ResizedAxis& axis, const ResizeSettings& settings) {
  return settings.mode == Interpolation::nearest ? 1 : 2 - 2 * first_tap(axis, settings);
}

ResizeTaps resize_taps(const ResizedAxis& axis, const ResizeSettings& settings) {
  ResizeTaps taps;
  taps.count = tap_count(axis, settings);
  const bool crops = settings.coordinates == CoordinateMode::tf_crop_and_resize;
  const double last = static_cast<double>(axis.from - 1);
  const auto inside = [&](std::int64_t index) { return std::clamp<std::int64_t>(index, 0, axis.from - 1); };
  for (std::int64_t i = 0; i < axis.to; ++i) {
    const double exact = coordinate(i, axis, settings.coordinates);
    if (crops) taps.extrapolated.push_back(exact < 0 || exact > last);
    // Only regions of interest are further away; the clamp keeps their conversion to integers defined.
    const double x = std::clamp(exact, -last - 4, 2 * last + 4);
    if (settings.mode == Interpolation::nearest && axis.rounds_up(settings)) {
      // As in ONNX Runtime a quotient is an f32: that of 7 and 0.7, as an f32, is 10, and above 10 in f64.
      taps.indices.push_back(inside(static_cast<std::int64_t>(std::ceil(static_cast<float>(x)))));
      continue;
    }
    if (settings.mode == Interpolation::nearest) {
      taps.indices.push_back(inside(static_cast<std::int64_t>(nearest(x, settings.nearest_mode))));
      continue;
    }
    // An element at the coordinate counts as the one after it.
    const auto before = static_cast<std::int64_t>(std::ceil(x)) - 1;
    const std::int64_t first = before + first_tap(axis, settings);
    const std::size_t begin = taps.weights.size();
    double sum = 0;
    for (std::int64_t k = first; k < first + taps.count; ++k) {
      const bool excluded = settings.exclude_outside && (k < 0 || k >= axis.from);
      const double weight = excluded ? 0.0 : filter((static_cast<double>(k) - x) * stretch(axis, settings), settings);
      taps.indices.push_back(inside(k));
      taps.weights.push_back(weight);
      sum += weight;
    }
    const bool normalised = settings.antialias || settings.exclude_outside;
    for (std::size_t k = begin; normalised && sum != 0 && k < taps.weights.size(); ++k) taps.weights[k] /= sum;
  }
  return taps;
}

}  // namespace tenon::onnx
