// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_naive.h"

#include "kernel/dispatch.h"
#include "kernel/launch.h"
#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"

namespace tenon::cuda {
namespace {

/// Strides in elements.
struct ImageStrides {
  std::int64_t image, channel, row, column;
};
ImageStrides strides_of(std::int64_t channels, const std::int64_t (&size)[2], bool channels_last) {
  const std::int64_t area = size[0] * size[1];
  if (channels_last) return {area * channels, 1, size[1] * channels, channels};
  return {area * channels, area, size[1], 1};
}

template <class T>
struct Operands {
  ConvShape shape;
  ImageStrides of_x, of_y;
  T *x, *w, *y;
  const T* biases[2];
  const T* residual;
  sdk::Activation activation;
  bool channels_last;
  std::int64_t w_filter, w_channel, w_place;  ///< strides of w between filters, between channels and between kernel elements
};

struct ImagePlace {
  std::int64_t image, channel, row, column;
};
/// The coordinates of element e of an image, in memory order.
__device__ inline ImagePlace image_place(std::int64_t e, std::int64_t channels, const std::int64_t (&size)[2], bool channels_last) {
  ImagePlace at{};
  if (channels_last) {
    at.channel = e % channels;
    e /= channels;
  }
  at.column = e % size[1];
  e /= size[1];
  at.row = e % size[0];
  e /= size[0];
  if (!channels_last) {
    at.channel = e % channels;
    e /= channels;
  }
  at.image = e;
  return at;
}

template <class T>
__device__ T with_epilogue(const Operands<T>& p, Wide<T> sum, std::int64_t channel, std::int64_t e) {
  for (const T* bias : p.biases) {
    if (bias != nullptr) sum += widen(bias[channel]);
  }
  if (p.residual != nullptr) sum += widen(p.residual[e]);
  return narrow<T>(activated(p.activation, sum));
}

/// y[n, k, p, q] = sum over c, r, s of x[n, c, p strides + r dilations - pads, ...] w[k, c, r, s].
template <class T>
__global__ void forward_kernel(Operands<T> o) {
  const ConvShape& g = o.shape;
  const std::int64_t depth = g.channels / g.groups, filters = g.filters / g.groups;
  for (std::int64_t e = thread_index(); e < g.result_count(); e += thread_count()) {
    const ImagePlace at = image_place(e, g.filters, g.result, o.channels_last);
    const T* const x = o.x + at.image * o.of_x.image + at.channel / filters * depth * o.of_x.channel;
    const T* const w = o.w + at.channel * o.w_filter;
    Wide<T> sum = 0;
    for (std::int64_t r = 0; r < g.kernel[0]; ++r) {
      const std::int64_t row = at.row * g.strides[0] + r * g.dilations[0] - g.pads_before[0];
      if (row < 0 || row >= g.image[0]) continue;
      for (std::int64_t s = 0; s < g.kernel[1]; ++s) {
        const std::int64_t column = at.column * g.strides[1] + s * g.dilations[1] - g.pads_before[1];
        if (column < 0 || column >= g.image[1]) continue;
        const T* const from = x + row * o.of_x.row + column * o.of_x.column;
        const T* const by = w + (r * g.kernel[1] + s) * o.w_place;
        for (std::int64_t c = 0; c < depth; ++c) sum += widen(from[c * o.of_x.channel]) * widen(by[c * o.w_channel]);
      }
    }
    o.y[e] = with_epilogue(o, sum, at.channel, e);
  }
}

/// x[n, c, h, w] = sum over those k, r, s, p, q of y[n, k, p, q] w[k, c, r, s] for which p strides + r dilations - pads is h, ....
template <class T>
__global__ void data_gradient_kernel(Operands<T> o) {
  const ConvShape& g = o.shape;
  const std::int64_t depth = g.channels / g.groups, filters = g.filters / g.groups;
  for (std::int64_t e = thread_index(); e < g.image_count(); e += thread_count()) {
    const ImagePlace at = image_place(e, g.channels, g.image, o.channels_last);
    const std::int64_t first = at.channel / depth * filters;
    const T* const y = o.y + at.image * o.of_y.image + first * o.of_y.channel;
    const T* const w = o.w + first * o.w_filter + at.channel % depth * o.w_channel;
    Wide<T> sum = 0;
    for (std::int64_t r = 0; r < g.kernel[0]; ++r) {
      const std::int64_t row = at.row + g.pads_before[0] - r * g.dilations[0];
      if (row < 0 || row % g.strides[0] != 0 || row / g.strides[0] >= g.result[0]) continue;
      for (std::int64_t s = 0; s < g.kernel[1]; ++s) {
        const std::int64_t column = at.column + g.pads_before[1] - s * g.dilations[1];
        if (column < 0 || column % g.strides[1] != 0 || column / g.strides[1] >= g.result[1]) continue;
        const T* const from = y + row / g.strides[0] * o.of_y.row + column / g.strides[1] * o.of_y.column;
        const T* const by = w + (r * g.kernel[1] + s) * o.w_place;
        for (std::int64_t k = 0; k < filters; ++k) sum += widen(from[k * o.of_y.channel]) * widen(by[k * o.w_filter]);
      }
    }
    o.x[e] = with_epilogue(o, sum, at.channel, e);
  }
}

/// w[k, c, r, s] = sum over n, p, q of x[n, c, p strides + r dilations - pads, ...] y[n, k, p, q]. Rows and images are summed separately: a
/// sum over a batch of large images has millions of terms.
template <class T>
__global__ void filter_gradient_kernel(Operands<T> o) {
  const ConvShape& g = o.shape;
  const std::int64_t depth = g.channels / g.groups, filters = g.filters / g.groups, area = g.kernel[0] * g.kernel[1];
  for (std::int64_t e = thread_index(); e < g.filter_count(); e += thread_count()) {
    const std::int64_t s = e % g.kernel[1], r = e / g.kernel[1] % g.kernel[0], c = e / area % depth, k = e / area / depth;
    const T* const x = o.x + (k / filters * depth + c) * o.of_x.channel;
    const T* const y = o.y + k * o.of_y.channel;
    Wide<T> sum = 0;
    for (std::int64_t n = 0; n < g.batch; ++n) {
      Wide<T> of_image = 0;
      for (std::int64_t p = 0; p < g.result[0]; ++p) {
        const std::int64_t row = p * g.strides[0] + r * g.dilations[0] - g.pads_before[0];
        if (row < 0 || row >= g.image[0]) continue;
        Wide<T> of_row = 0;
        for (std::int64_t q = 0; q < g.result[1]; ++q) {
          const std::int64_t column = q * g.strides[1] + s * g.dilations[1] - g.pads_before[1];
          if (column < 0 || column >= g.image[1]) continue;
          of_row += widen(x[n * o.of_x.image + row * o.of_x.row + column * o.of_x.column]) *
                    widen(y[n * o.of_y.image + p * o.of_y.row + q * o.of_y.column]);
        }
        of_image += of_row;
      }
      sum += of_image;
    }
    o.w[e] = narrow<T>(sum);
  }
}

template <class T>
void convolve_as(Stream& stream, const NaiveConv& work) {
  const ConvShape& g = work.shape;
  const std::int64_t area = g.kernel[0] * g.kernel[1], depth = work.filter_channels_last ? work.filter_channels : g.channels / g.groups;
  const Operands<T> operands{g,
                             strides_of(g.channels, g.image, work.channels_last),
                             strides_of(g.filters, g.result, work.channels_last),
                             static_cast<T*>(work.x),
                             static_cast<T*>(work.w),
                             static_cast<T*>(work.y),
                             {static_cast<const T*>(work.biases[0]), static_cast<const T*>(work.biases[1])},
                             static_cast<const T*>(work.residual),
                             work.activation,
                             work.channels_last,
                             depth * area,
                             work.filter_channels_last ? 1 : area,
                             work.filter_channels_last ? depth : 1};
  switch (work.direction) {
    case ConvDirection::forward:
      return launch_over(stream, g.result_count(), forward_kernel<T>, operands);
    case ConvDirection::data_gradient:
      return launch_over(stream, g.image_count(), data_gradient_kernel<T>, operands);
    case ConvDirection::filter_gradient:
      return launch_over(stream, g.filter_count(), filter_gradient_kernel<T>, operands);
  }
}

}  // namespace

void convolve_naively(Stream& stream, const NaiveConv& work) {
  dispatch_floating(work.dtype, [&]<class T>() { convolve_as<T>(stream, work); });
}

}  // namespace tenon::cuda
