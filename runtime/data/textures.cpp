// SPDX-License-Identifier: Apache-2.0
// data/textures.cpp - coloured textures of ten kinds. The kind determines the pattern and weakly the colours.
//
// Uses only IEEE + - * / sqrt on f32 without contraction: the same bytes from every compiler and on every machine.
#include <algorithm>
#include <array>
#include <cmath>

#include <tenon/data.h>

#include "data/draw.h"
#include "data/generated.h"
#include "data/streams.h"

namespace tenon {
namespace {

using data::Draw;

constexpr int side = 32;

float fraction(float v) {
  return v - std::floor(v);
}
/// A triangle wave of period 1 between 0 and 1.
float wave(float v) {
  return std::fabs(2.0f * fraction(v) - 1.0f);
}
float step(float v) {
  return v < 0.5f ? 0.0f : 1.0f;
}

/// A kind of texture and its parameters.
struct Pattern {
  std::int64_t kind;
  float frequency;  ///< periods per pixel
  float phase_x, phase_y;
  float tilt;                   ///< slight rotation of the pattern
  std::array<float, 12> spots;  ///< x0 y0 x1 y1 ...

  /// The value at a pixel, between 0 and 1.
  float at(float x, float y) const {
    const float u = (x + tilt * y) * frequency + phase_x, v = (y - tilt * x) * frequency + phase_y;
    switch (kind) {
      case 0:
        return wave(u);  // vertical stripes
      case 1:
        return wave(v);  // horizontal stripes
      case 2:
        return wave(0.7f * (u + v));  // diagonal stripes, down to the left
      case 3:
        return wave(0.7f * (u - v));  // diagonal stripes, down to the right
      case 4:
        return std::fabs(step(fraction(u)) - step(fraction(v)));  // checkerboard
      case 5:
        return wave(distance(x, y, 0) * frequency + phase_x);  // rings
      case 6:
        return std::min(step(wave(u)), step(wave(v)));  // separate squares
      case 7:
        return std::max(wave(u), wave(v));  // a lattice
      case 8:
        return std::clamp(1.4f - 0.25f * nearest_spot(x, y), 0.0f, 1.0f);  // a few blobs
      default:
        return std::clamp(0.5f + (x * (phase_x - 0.5f) + y * (phase_y - 0.5f)) / 16.0f, 0.0f, 1.0f);  // a linear gradient
    }
  }

 private:
  float distance(float x, float y, std::size_t spot) const {
    const float dx = x - spots[2 * spot], dy = y - spots[2 * spot + 1];
    return std::sqrt(dx * dx + dy * dy);
  }
  float nearest_spot(float x, float y) const {
    float nearest = distance(x, y, 0);
    for (std::size_t i = 1; i < spots.size() / 2; ++i) nearest = std::min(nearest, distance(x, y, i));
    return nearest;
  }
};

Pattern draw_pattern(Draw& draw) {
  Pattern pattern{};
  pattern.kind = draw.below(10);
  pattern.frequency = draw.uniform(0.10f, 0.20f);
  pattern.phase_x = draw.uniform(0, 1);
  pattern.phase_y = draw.uniform(0, 1);
  pattern.tilt = draw.uniform(-0.2f, 0.2f);
  for (float& place : pattern.spots) place = draw.uniform(2, side - 3);
  return pattern;
}

std::int64_t paint(Draw& draw, std::uint8_t* out_pixels) {
  const Pattern pattern = draw_pattern(draw);
  const float grain = draw.uniform(5, 30);
  // Each kind prefers a hue, by less than colours vary.
  const float hue = 0.1f * static_cast<float>(pattern.kind);
  for (int channel = 0; channel < 3; ++channel) {
    const float hint = 50.0f * (wave(hue + static_cast<float>(channel) / 3.0f) - 0.5f);
    const float dark = draw.uniform(10, 110) + hint, light = draw.uniform(130, 240) + hint;
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const float value = dark + (light - dark) * pattern.at(static_cast<float>(x), static_cast<float>(y)) + draw.uniform(-grain, grain);
        *out_pixels++ = static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f));
      }
    }
  }
  return pattern.kind;
}

}  // namespace

std::shared_ptr<const ArrayDataset> generate_textures(const GeneratedOptions& options) {
  return data::generate_images("textures", {3, side, side}, data::stream_of_textures, options, paint);
}

}  // namespace tenon
