// SPDX-License-Identifier: Apache-2.0
// data/image_transform.cpp - resizes, crops and converts images.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <tenon/data.h>
#include <tenon/error.h>

namespace tenon {
namespace {

/// The weights of the source pixels [first, first + weights.size()) in one pixel of the result.
struct Taps {
  std::int64_t first = 0;
  std::vector<float> weights;
};

/// A triangle around the pixel's centre, as wide as two pixels of the result or of the source, whichever are larger.
std::vector<Taps> taps_of(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), support = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<std::size_t>(to));
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto begin = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - support + 0.5));
    const auto end = std::min<std::int64_t>(from, static_cast<std::int64_t>(centre + support + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t p = begin; p < end; ++p) {
      weights.push_back(std::max(0.0, 1 - std::abs(static_cast<double>(p) + 0.5 - centre) / support));
      sum += weights.back();
    }
    Taps& taps = all[static_cast<std::size_t>(i)];
    taps.first = begin;
    for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / sum));
  }
  return all;
}

Tensor resized(const Tensor& image, std::int64_t height, std::int64_t width) {
  const std::int64_t channels = image.shape()[0], rows = image.shape()[1], columns = image.shape()[2];
  if (rows == height && columns == width) return image;
  const std::vector<Taps> across = taps_of(columns, width), down = taps_of(rows, height);
  Tensor result = Tensor::empty(DType::u8, {channels, height, width});
  std::vector<float> narrow(static_cast<std::size_t>(rows * width));
  const auto* from = image.data<std::uint8_t>();
  auto* to = result.data<std::uint8_t>();
  for (std::int64_t c = 0; c < channels; ++c, from += rows * columns) {
    float* out = narrow.data();
    for (std::int64_t r = 0; r < rows; ++r) {
      for (const Taps& taps : across) {
        float sum = 0;
        const std::uint8_t* pixel = from + r * columns + taps.first;
        for (const float weight : taps.weights) sum += weight * static_cast<float>(*pixel++);
        *out++ = sum;
      }
    }
    for (const Taps& taps : down) {
      for (std::int64_t x = 0; x < width; ++x) {
        float sum = 0.5F;  // rounds to the nearest byte
        const float* pixel = narrow.data() + taps.first * width + x;
        for (const float weight : taps.weights) sum += weight * *pixel, pixel += width;
        *to++ = static_cast<std::uint8_t>(std::clamp(sum, 0.0F, 255.0F));
      }
    }
  }
  return result;
}

Tensor cropped(const Tensor& image, std::int64_t height, std::int64_t width) {
  const std::int64_t rows = image.shape()[1], columns = image.shape()[2];
  if (height > rows || width > columns) {
    throw Error(
        fmt::format("expected at least {} x {} pixels (height x width) to crop, got {} x {}; resize the image to a larger size first",
                    height, width, rows, columns));
  }
  const std::int64_t top = (rows - height) / 2, left = (columns - width) / 2;
  return image.slice(1, top, top + height).slice(2, left, left + width).to_host();
}

Tensor with_channels(const Tensor& image, std::int64_t channels) {
  const std::int64_t own = image.shape()[0], height = image.shape()[1], width = image.shape()[2], count = height * width;
  if (own == channels) return image;
  if ((own != 1 && own != 3) || (channels != 1 && channels != 3)) {
    throw Error(fmt::format("expected an image of 1 or 3 channels for {} channels, got {}", channels, own));
  }
  Tensor result = Tensor::empty(DType::u8, {channels, height, width});
  const auto* from = image.data<std::uint8_t>();
  auto* to = result.data<std::uint8_t>();
  if (channels == 3) {
    for (std::int64_t c = 0; c < 3; ++c) std::copy_n(from, count, to + c * count);
    return result;
  }
  // 0.299 R + 0.587 G + 0.114 B in 16 bits of fraction, as Pillow computes it
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<std::uint8_t>((from[i] * 19595U + from[count + i] * 38470U + from[2 * count + i] * 7471U + 0x8000U) >> 16);
  }
  return result;
}

/// The sides that one or two numbers stand for.
std::pair<std::int64_t, std::int64_t> sides_of(const char* what, const std::vector<std::int64_t>& sides) {
  constexpr std::int64_t max_side = 1 << 16;
  if (sides.size() > 2 || std::any_of(sides.begin(), sides.end(), [](std::int64_t side) { return side < 1 || side > max_side; })) {
    throw Error(fmt::format("image {}: expected one or two sizes of 1 to {}, got [{}]", what, max_side, fmt::join(sides, ", ")));
  }
  return {sides.front(), sides.back()};
}

}  // namespace

Tensor transform_image(const Tensor& image, const ImageOptions& options) {
  if (image.dtype() != DType::u8 || image.shape().rank() != 3 || image.count() == 0) {
    throw Error(fmt::format("expected an image u8(channels, height, width), got {}", image.str()));
  }
  Tensor result = image.on_host() && image.is_dense() ? image : image.to_host();
  if (!options.resize.empty()) {
    auto [height, width] = sides_of("resize", options.resize);
    const std::int64_t rows = image.shape()[1], columns = image.shape()[2];
    if (options.resize.size() == 1) (rows < columns ? width : height) = height * std::max(rows, columns) / std::min(rows, columns);
    result = resized(result, height, width);
  }
  if (!options.crop.empty()) {
    const auto [height, width] = sides_of("crop", options.crop);
    result = cropped(result, height, width);
  }
  return options.channels == 0 ? result : with_channels(result, options.channels);
}

}  // namespace tenon
