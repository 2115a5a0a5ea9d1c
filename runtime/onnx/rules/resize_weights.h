// SPDX-License-Identifier: Apache-2.0
// onnx/rules/resize_weights.h - how the elements of a resized axis are made of those of the original: ONNX's Resize along one axis.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::onnx {

enum class Interpolation { nearest, linear, cubic };

/// coordinate_transformation_mode.
enum class CoordinateMode {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_half_pixel_for_nn,
  tf_crop_and_resize
};

/// nearest_mode.
enum class NearestMode { round_prefer_floor, round_prefer_ceil, floor, ceil };

struct ResizeSettings {
  Interpolation mode = Interpolation::nearest;
  CoordinateMode coordinates = CoordinateMode::half_pixel;
  NearestMode nearest_mode = NearestMode::round_prefer_floor;
  bool shrinks_by_ceil = false;  ///< of Resize in opset 10: along axes that become shorter, the mode nearest rounds up
  double cubic_coeff_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation_value = 0;
};

/// One axis that changes from `from` to `to` elements, both 1 or more. The scale is a number > 0, not always to / from.
struct ResizedAxis {
  std::int64_t axis = 0, from = 0, to = 0;
  double scale = 1;
  double roi_start = 0, roi_end = 1;  ///< of tf_crop_and_resize

  /// True if its nearest elements are rounded up, whatever the nearest_mode.
  bool rounds_up(const ResizeSettings& settings) const { return settings.shrinks_by_ceil && scale < 1; }
  /// scale * from, which is `to` or, where that was rounded, close to it.
  double length() const;
};

/// Result i is the sum over k < count of weights[i count + k] x[indices[i count + k]]; the mode nearest has one index and no weights.
struct ResizeTaps {
  std::int64_t count = 1;
  std::vector<std::int64_t> indices;  ///< elements of x
  std::vector<double> weights;
  std::vector<bool> extrapolated;  ///< by result: it is extrapolation_value instead. Empty: none is
};

/// The number of elements of x that a result is made of.
std::int64_t tap_count(const ResizedAxis& axis, const ResizeSettings& settings);
/// Source  onnx/reference/ops/op_resize.py of ONNX 1.23.
ResizeTaps resize_taps(const ResizedAxis& axis, const ResizeSettings& settings);

}  // namespace tenon::onnx
