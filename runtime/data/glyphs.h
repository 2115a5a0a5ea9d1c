// SPDX-License-Identifier: Apache-2.0
// data/glyphs.h - digits as strokes.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace tenon::data {

struct Point {
  float x, y;
};

/// A polyline through control points, or a curve approximated by cutting its corners.
struct Stroke {
  bool curved;
  std::span<const Point> points;
};

/// The strokes of a digit in a box of [0, 1] x [0, 1], y downwards.
std::span<const Stroke> strokes_of_digit(std::int64_t digit);

}  // namespace tenon::data
