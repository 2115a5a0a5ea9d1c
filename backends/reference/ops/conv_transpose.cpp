// SPDX-License-Identifier: Apache-2.0
// Transposed convolution: every element of x adds a scaled filter to y.
#include <tenon/sdk/kernel.h>

#include <vector>

#include "image.h"

namespace tenon::reference {
namespace {

/// y[n, o, i strides + k dilations - pads_before] += x[n, c, i...] w[c, o, k...], starting from b[o]; terms outside of y are dropped
///
/// Shapes  x (N, C, d...), w (C, O / groups, k...), b (O) or absent, y (N, O, o...); dense.
/// Dtypes  f32, f64; everything up to the final rounding is f64.
template <class T>
void conv_transpose(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_conv>();
  const sdk::Operand &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
  const T* from_x = call.input<T>(0);
  const T* from_w = call.input<T>(1);
  const T* b = call.has_input(2) ? call.input<T>(2) : nullptr;
  T* out = call.output<T>(0);
  const Spatial sizes = spatial_sizes(x);
  const Windows windows(attributes, x.rank - 2, spatial_sizes(y), spatial_sizes(w));
  const std::int64_t channels = x.shape[1], filters = y.shape[1], group_filters = w.shape[1], group_channels = channels / attributes.groups;
  const std::int64_t image = count_of(sizes), taps = count_of(windows.kernel), results = count_of(windows.sizes);
  std::vector<double> sums(static_cast<std::size_t>(results));
  for (std::int64_t n = 0; n < x.shape[0]; ++n) {
    for (std::int64_t o = 0; o < filters; ++o) {
      sums.assign(sums.size(), b == nullptr ? 0 : double{b[o]});
      const std::int64_t first = o / group_filters * group_channels;
      for (std::int64_t c = first; c < first + group_channels; ++c) {
        const T* pixels = from_x + (n * channels + c) * image;
        const T* filter = from_w + (c * group_filters + o % group_filters) * taps;
        for_each_index(sizes, [&](const Spatial& i, std::int64_t index) {
          windows.for_each_tap(i, [&](std::int64_t tap, std::int64_t place) {
            sums[static_cast<std::size_t>(place)] += double{pixels[index]} * double{filter[tap]};
          });
        });
      }
      for (const double sum : sums) *out++ = static_cast<T>(sum);
    }
  }
}

}  // namespace
TENON_KERNEL(conv_transpose, float, double)
}  // namespace tenon::reference
