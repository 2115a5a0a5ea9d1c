// SPDX-License-Identifier: Apache-2.0
// Sliding windows as columns, and the inverse accumulation.
#include <tenon/sdk/kernel.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "image.h"

namespace tenon::reference {
namespace {

/// Windows over an image operand, with their sizes.
struct Columns {
  Windows windows;
  Spatial counts{1, 1, 1};  ///< windows along each dimension
  std::int64_t image, taps, results;

  Columns(const tenon_attributes_window& attributes, const sdk::Operand& x)
      : windows(attributes, x.rank - 2, spatial_sizes(x), taps_of(attributes, x.rank - 2)),
        image(count_of(windows.sizes)),
        taps(count_of(windows.kernel)) {
    for (std::uint32_t i = 0; i + 2 < x.rank; ++i) {
      const std::int64_t extent = attributes.dilations[i] * (attributes.kernel[i] - 1) + 1;
      counts[i] = (attributes.pads_before[i] + x.shape[i + 2] + attributes.pads_after[i] - extent) / attributes.strides[i] + 1;
    }
    results = count_of(counts);
  }

  static Spatial taps_of(const tenon_attributes_window& attributes, std::uint32_t dims) {
    Spatial taps{1, 1, 1};
    for (std::uint32_t i = 0; i < dims; ++i) taps[i] = attributes.kernel[i];
    return taps;
  }
};

/// y[n, (c, k...), (i...)] = x[n, c, i strides + k dilations - pads_before], zeros outside of x
///
/// Shapes  x (N, C, d...), y (N, C * product of kernel, windows); dense.
template <class T>
void im2col(const sdk::Call& call) {
  const Columns columns(call.attr<tenon_attributes_window>(), call.inputs[0]);
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  std::fill_n(y, call.outputs[0].count, T{});
  const std::int64_t images = call.inputs[0].shape[0] * call.inputs[0].shape[1];
  for (std::int64_t n = 0; n < images; ++n, x += columns.image, y += columns.taps * columns.results) {
    for_each_index(columns.counts, [&](const Spatial& i, std::int64_t index) {
      columns.windows.for_each_tap(i, [&](std::int64_t tap, std::int64_t place) { y[tap * columns.results + index] = x[place]; });
    });
  }
}

/// y[n, c, i strides + k dilations - pads_before] += x[n, (c, k...), (i...)]; terms outside of y are dropped
///
/// Shapes  x (N, C * product of kernel, windows), y (N, C, d...); dense.
/// Dtypes  floating types are summed in f64; integer sums wrap.
template <class T>
void col2im(const sdk::Call& call) {
  using Sum = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::common_type<double>>::type;
  const Columns columns(call.attr<tenon_attributes_window>(), call.outputs[0]);
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  const std::int64_t images = call.outputs[0].shape[0] * call.outputs[0].shape[1];
  std::vector<Sum> sums(static_cast<std::size_t>(columns.image));
  for (std::int64_t n = 0; n < images; ++n, x += columns.taps * columns.results) {
    sums.assign(sums.size(), Sum{});
    for_each_index(columns.counts, [&](const Spatial& i, std::int64_t index) {
      columns.windows.for_each_tap(i, [&](std::int64_t tap, std::int64_t place) {
        sums[static_cast<std::size_t>(place)] += static_cast<Sum>(x[tap * columns.results + index]);
      });
    });
    for (const Sum sum : sums) *y++ = static_cast<T>(sum);
  }
}

}  // namespace
TENON_KERNEL(im2col, float, double, std::int32_t, std::int64_t)
TENON_KERNEL(col2im, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::reference
