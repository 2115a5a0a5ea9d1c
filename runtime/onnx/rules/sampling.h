// SPDX-License-Identifier: Apache-2.0
// onnx/rules/sampling.h - values of images at positions that are computed in the graph.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/functions.h>

#include "onnx/node.h"

namespace tenon::onnx {

/// The pixels of x (N, C, d...) as rows (N * product of d, C), which a Gather reads as a whole.
Value pixel_rows(const Node& node, Value x);

/// One of the pixels along an axis that a sample is made of. Values have shapes that broadcast between the axes.
struct Tap {
  Value index;        ///< i64, of a pixel of the image
  Value weight = {};  ///< absent: 1
  Value inside = {};  ///< bool: the pixel counts, or it is 0; absent: it counts
};

/// Samples of images: rows[first + index of each axis * its stride] times the product of the weights, for each choice of one tap per axis,
/// combined by `combine`. Indices of shape s give samples (s..., C).
Value sample(Node& node, Value rows, Value first, const std::vector<std::vector<Tap>>& axes, const std::vector<std::int64_t>& strides,
             Value (*combine)(Value, Value));

/// Row-major strides of the spatial dimensions of x (N, C, d...).
std::vector<std::int64_t> pixel_strides(const Node& node, const Shape& x);

/// The two pixels next to a position on an axis of n pixels; others than those of the image are 0. NaN samples no pixel.
std::vector<Tap> linear_taps(Value position, std::int64_t n);

/// index clamped to the pixels of an axis.
Value pixel_index(Value place, std::int64_t n);
/// True where a place is a pixel of an axis.
Value is_pixel(Value place, std::int64_t n);

}  // namespace tenon::onnx
