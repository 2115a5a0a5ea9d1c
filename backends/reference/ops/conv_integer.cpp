// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers.
#include <tenon/sdk/kernel.h>

#include "image.h"

namespace tenon::reference {
namespace {

template <class Q>
std::int64_t element_or_zero(const sdk::Call& call, std::uint32_t operand, std::int64_t i) {
  if (!call.has_input(operand)) return 0;
  return call.input<Q>(operand)[call.inputs[operand].rank == 0 ? 0 : i];
}

template <class X, class W>
void convolve(const sdk::Call& call) {
  const sdk::Operand &image = call.inputs[0], &filters = call.inputs[1], &result = call.outputs[0];
  const auto& attributes = call.attr<tenon_attributes_conv>();
  const Windows windows(attributes, image.rank - 2, spatial_sizes(image), spatial_sizes(filters));
  const std::int64_t elements = count_of(spatial_sizes(image)), taps = count_of(spatial_sizes(filters));
  const std::int64_t group_channels = filters.shape[1], group_filters = filters.shape[0] / attributes.groups;
  const X* x = call.input<X>(0);
  const W* w = call.input<W>(1);
  auto* y = call.output<std::int32_t>(0);
  const std::int64_t x_zero_point = element_or_zero<X>(call, 2, 0);
  for (std::int64_t n = 0; n < image.shape[0]; ++n) {
    for (std::int64_t o = 0; o < filters.shape[0]; ++o) {
      const std::int64_t w_zero_point = element_or_zero<W>(call, 3, o);
      const X* const group = x + (n * image.shape[1] + o / group_filters * group_channels) * elements;
      for_each_index(spatial_sizes(result), [&](const Spatial& i, std::int64_t) {
        std::int64_t sum = 0;
        for (std::int64_t c = 0; c < group_channels; ++c) {
          windows.for_each_tap(i, [&](std::int64_t tap, std::int64_t place) {
            sum += (group[c * elements + place] - x_zero_point) * (w[(o * group_channels + c) * taps + tap] - w_zero_point);
          });
        }
        *y++ = static_cast<std::int32_t>(static_cast<std::uint64_t>(sum));
      });
    }
  }
}

/// y[n, o, i...] = sum over c, k... of (x[n, c, i strides + k dilations - pads_before] - x_zero_point) (w[o, c, k...] - w_zero_point[o]),
/// modulo 2^32, without the terms outside of x
///
/// Shapes  as of conv; x_zero_point (), w_zero_point () or (O), or absent for 0.
/// Dtypes  x of T; w of i8 or u8.
template <class T>
void conv_integer(const sdk::Call& call) {
  return call.inputs[1].dtype == TENON_DTYPE_I8 ? convolve<T, std::int8_t>(call) : convolve<T, std::uint8_t>(call);
}

}  // namespace
TENON_KERNEL(conv_integer, std::int8_t, std::uint8_t)
}  // namespace tenon::reference
