// SPDX-License-Identifier: Apache-2.0
// data/digits.cpp - generated handwritten digits: strokes with jittered control points, an affine map, and noise.
//
// Uses only IEEE + - * / sqrt on f32 without contraction: the same bytes from every compiler and on every machine.
#include <algorithm>
#include <cmath>
#include <vector>

#include <tenon/data.h>

#include "data/draw.h"
#include "data/generated.h"
#include "data/glyphs.h"
#include "data/streams.h"

namespace tenon {
namespace {

using data::Draw;
using data::Point;

constexpr int side = 28;

/// Maps the glyph's box to pixels: p -> centre + M (p - 1/2).
struct Affine {
  float xx, xy, yx, yy, cx, cy;
  Point operator()(Point p) const {
    const float u = p.x - 0.5f, v = p.y - 0.5f;
    return {cx + xx * u + xy * v, cy + yx * u + yy * v};
  }
};

/// Draws size, slant, rotation and position.
Affine draw_affine(Draw& draw) {
  const float width = draw.uniform(11.0f, 19.0f), height = draw.uniform(16.0f, 22.0f);
  const float turn = draw.uniform(-0.22f, 0.22f), slant = draw.uniform(-0.30f, 0.30f);
  return {width, (slant - turn) * height, turn * width, height, 13.5f + draw.uniform(-2.5f, 2.5f), 13.5f + draw.uniform(-2.5f, 2.5f)};
}

/// Chaikin's corner cutting, which keeps the end points. Two passes are smooth enough for 28 pixels.
void cut_corners(std::vector<Point>& line, std::vector<Point>& spare) {
  spare.clear();
  spare.push_back(line.front());
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    const Point a = line[i], b = line[i + 1];
    spare.push_back({0.75f * a.x + 0.25f * b.x, 0.75f * a.y + 0.25f * b.y});
    spare.push_back({0.25f * a.x + 0.75f * b.x, 0.25f * a.y + 0.75f * b.y});
  }
  spare.push_back(line.back());
  line.swap(spare);
}

/// Draws a line from a to b: ink is 1 within `radius` and falls to 0 over one pixel; overlapping lines keep the maximum.
void ink_segment(std::array<float, side * side>& page, Point a, Point b, float radius) {
  const float reach = radius + 1.0f;
  const auto first = [&](float v) { return std::clamp(static_cast<int>(std::floor(v - reach)), 0, side); };
  const auto last = [&](float v) { return std::clamp(static_cast<int>(std::ceil(v + reach)) + 1, 0, side); };
  const float dx = b.x - a.x, dy = b.y - a.y;
  const float length2 = std::max(dx * dx + dy * dy, 1e-6f);
  for (int y = first(std::min(a.y, b.y)); y < last(std::max(a.y, b.y)); ++y) {
    for (int x = first(std::min(a.x, b.x)); x < last(std::max(a.x, b.x)); ++x) {
      const float px = static_cast<float>(x) - a.x, py = static_cast<float>(y) - a.y;
      const float t = std::clamp((px * dx + py * dy) / length2, 0.0f, 1.0f);
      const float ex = px - t * dx, ey = py - t * dy;
      const float ink = std::clamp(radius + 0.5f - std::sqrt(ex * ex + ey * ey), 0.0f, 1.0f);
      float& pixel = page[static_cast<std::size_t>(y) * static_cast<std::size_t>(side) + static_cast<std::size_t>(x)];
      pixel = std::max(pixel, ink);
    }
  }
}

/// Draws digits, reusing its buffers.
class DigitRenderer {
 public:
  std::int64_t draw(Draw& draw, std::uint8_t* out_pixels) {
    const std::int64_t digit = draw.below(10);
    const Affine place = draw_affine(draw);
    const float radius = draw.uniform(0.55f, 1.6f);
    page_.fill(0);
    for (const data::Stroke& stroke : data::strokes_of_digit(digit)) {
      line_.clear();
      for (const Point p : stroke.points) {
        const float jitter_x = draw.uniform(-jitter, jitter), jitter_y = draw.uniform(-jitter, jitter);
        line_.push_back(place({p.x + jitter_x, p.y + jitter_y}));
      }
      if (stroke.curved) {
        cut_corners(line_, spare_);
        cut_corners(line_, spare_);
      }
      for (std::size_t i = 0; i + 1 < line_.size(); ++i) ink_segment(page_, line_[i], line_[i + 1], radius);
    }
    add_stray_mark(draw);
    write_pixels(draw, out_pixels);
    return digit;
  }

 private:
  static constexpr float jitter = 0.06f;

  /// Adds a stray mark to half of the images, so that no single pixel determines a digit.
  void add_stray_mark(Draw& draw) {
    const bool there = draw.coin();
    const Point a{draw.uniform(0, side - 1), draw.uniform(0, side - 1)};
    const Point b{a.x + draw.uniform(-7, 7), a.y + draw.uniform(-7, 7)};
    const float radius = draw.uniform(0.3f, 0.9f);
    if (there) ink_segment(page_, a, b, radius);
  }

  void write_pixels(Draw& draw, std::uint8_t* out_pixels) {
    const float ink = draw.uniform(140, 255), grain = draw.uniform(4, 40);
    for (const float value : page_) {
      const float noise = draw.uniform(-grain, grain);
      *out_pixels++ = static_cast<std::uint8_t>(std::clamp(value * ink + noise, 0.0f, 255.0f));
    }
  }

  std::array<float, side * side> page_{};
  std::vector<Point> line_, spare_;
};

}  // namespace

std::shared_ptr<const ArrayDataset> generate_digits(const GeneratedOptions& options) {
  DigitRenderer renderer;
  return data::generate_images("digits", {side, side}, data::stream_of_digits, options,
                               [&](Draw& draw, std::uint8_t* out_pixels) { return renderer.draw(draw, out_pixels); });
}

}  // namespace tenon
