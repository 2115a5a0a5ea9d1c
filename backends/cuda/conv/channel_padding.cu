// SPDX-License-Identifier: Apache-2.0
#include "conv/channel_padding.h"

#include "kernel/image.cuh"
#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {
namespace {

using Bits = std::uint16_t;  // elements are moved as bits
constexpr int width = padded_pixel_channels;

struct Pixels {
  std::int64_t count, channels, area;
  Divisor by_area;

  explicit Pixels(const FewChannels& shape)
      : count(shape.outer * shape.area), channels(shape.channels), area(shape.area), by_area(shape.area) {}
  /// The index of a pixel's first channel in (outer, channels, area).
  __device__ std::int64_t first(std::int64_t pixel) const {
    const std::int64_t outer = by_area.quotient(pixel);
    return outer * channels * area + pixel - outer * area;
  }
};

/// A thread writes one pixel. The image of the first layer of ResNet-50, (256, 224, 224, 3), is 77 MB that are read and 206 MB that are
/// written: 69 us at 4.1 TB/s.
__global__ void pad_kernel(Pixels pixels, const Bits* narrow, Bits* padded) {
  for (std::int64_t p = thread_index(); p < pixels.count; p += thread_count()) {
    const Bits* const from = narrow + pixels.first(p);
    Pack<Bits, width> pixel{};
#pragma unroll
    for (int c = 0; c < width - 1; ++c) {
      if (c < pixels.channels) pixel.at[c] = from[c * pixels.area];
    }
    store_pack<width>(padded + p * width, pixel);
  }
}

/// A thread reads one pixel. This is for filters, which are small.
__global__ void unpad_kernel(Pixels pixels, const Bits* padded, Bits* narrow) {
  for (std::int64_t p = thread_index(); p < pixels.count; p += thread_count()) {
    const Pack<Bits, width> pixel = pack_at<width>(padded + p * width);
    Bits* const to = narrow + pixels.first(p);
#pragma unroll
    for (int c = 0; c < width - 1; ++c) {
      if (c < pixels.channels) to[c * pixels.area] = pixel.at[c];
    }
  }
}

}  // namespace

void pad_channels(Stream& stream, const FewChannels& shape, const void* narrow, void* padded) {
  const Pixels pixels(shape);
  launch_over(stream, pixels.count, pad_kernel, pixels, static_cast<const Bits*>(narrow), static_cast<Bits*>(padded));
}

void unpad_channels(Stream& stream, const FewChannels& shape, const void* padded, void* narrow) {
  const Pixels pixels(shape);
  launch_over(stream, pixels.count, unpad_kernel, pixels, static_cast<const Bits*>(padded), static_cast<Bits*>(narrow));
}

}  // namespace tenon::cuda
