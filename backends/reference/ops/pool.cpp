// SPDX-License-Identifier: Apache-2.0
// ops/pool.cpp - max and average pooling.
#include <tenon/sdk/kernel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace tenon::reference {
namespace {

/// One spatial dimension: `count` windows over `size` elements.
struct Axis {
  std::int64_t size = 1, count = 1, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;

  std::int64_t start(std::int64_t window) const { return window * stride - before; }
  /// The number of elements of a window inside the image, padded or not.
  std::int64_t elements(std::int64_t window, bool padded) const {
    const std::int64_t begin = padded ? start(window) : std::max<std::int64_t>(start(window), 0);
    return std::min(start(window) + kernel, padded ? size + after : size) - begin;
  }
};

/// `planes` images of one channel each, (h, w) elements, and their windows. An image (N, C, L) has one row.
struct Geometry {
  std::int64_t planes;
  Axis h, w;

  Geometry(const sdk::Operand& image, const sdk::Operand& windows, const tenon_attributes_window& a)
      : planes(image.shape[0] * image.shape[1]) {
    for (std::uint32_t i = 0; i + 2 < image.rank; ++i) {
      Axis& axis = i + 3 == image.rank ? w : h;
      axis = {image.shape[i + 2], windows.shape[i + 2], a.kernel[i], a.strides[i], a.dilations[i], a.pads_before[i], a.pads_after[i]};
    }
  }
};

/// body(window, element) for every element of x in a window, in row-major order; both are indices within a plane.
template <class Body>
void for_each_seen(const Geometry& g, std::int64_t row, std::int64_t column, Body&& body) {
  for (std::int64_t i = 0; i < g.h.kernel; ++i) {
    const std::int64_t y = g.h.start(row) + i * g.h.dilation;
    if (y < 0 || y >= g.h.size) continue;
    for (std::int64_t k = 0; k < g.w.kernel; ++k) {
      const std::int64_t x = g.w.start(column) + k * g.w.dilation;
      if (x >= 0 && x < g.w.size) body(y * g.w.size + x);
    }
  }
}

/// y = largest x of each window; indices = its row-major index in x.
///
/// Shapes      x (N, C, d...), y and indices (N, C, windows...), one or two spatial dimensions; either may be absent.
/// Dtypes      f32, f64, i8, u8; indices i64. The first of equal elements; the first NaN if there is one.
/// Attributes  kernel, strides, dilations, padding; ceil_mode is implied by the shape of y.
template <class T>
void max_pool(const sdk::Call& call) {
  const sdk::Operand& windows = call.has_output(0) ? call.outputs[0] : call.outputs[1];
  const Geometry g(call.inputs[0], windows, call.attr<tenon_attributes_window>());
  T* y = call.has_output(0) ? call.output<T>(0) : nullptr;
  std::int64_t* indices = call.has_output(1) ? call.output<std::int64_t>(1) : nullptr;
  const std::int64_t plane_size = g.h.size * g.w.size;
  std::int64_t result = 0;
  for (std::int64_t plane = 0; plane < g.planes; ++plane) {
    const T* x = call.input<T>(0) + plane * plane_size;
    for (std::int64_t row = 0; row < g.h.count; ++row) {
      for (std::int64_t column = 0; column < g.w.count; ++column, ++result) {
        constexpr bool has_nan = std::numeric_limits<T>::has_quiet_NaN;
        T maximum = has_nan ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
        std::int64_t place = -1;
        for_each_seen(g, row, column, [&](std::int64_t i) {
          const bool first_nan = has_nan && x[i] != x[i] && maximum == maximum;
          if (place >= 0 && !(x[i] > maximum) && !first_nan) return;
          maximum = x[i];
          place = i;
        });
        if (y != nullptr) y[result] = maximum;
        if (indices != nullptr) indices[result] = plane * plane_size + place;
      }
    }
  }
}

/// dx = 0, then dx[indices] += dy.
///
/// Shapes  dy and indices (N, C, windows...), dx (N, C, d...).
/// Dtypes  f32, f64, summed in f64.
/// Errors  an index outside the image and channel of its dy.
template <class T>
void max_pool_grad(const sdk::Call& call) {
  const sdk::Operand &dx = call.outputs[0], &dy = call.inputs[0];
  const std::int64_t planes = dx.shape[0] * dx.shape[1];
  if (planes == 0) return;
  const std::int64_t elements = dx.count / planes, windows = dy.count / planes;
  const std::int64_t* indices = call.input<std::int64_t>(1);
  std::vector<double> sums;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    sums.assign(static_cast<std::size_t>(elements), 0.0);
    for (std::int64_t i = plane * windows; i < (plane + 1) * windows; ++i) {
      const std::int64_t begin = plane * elements;
      if (indices[i] < begin || indices[i] >= begin + elements) {
        throw sdk::Error(TENON_INVALID_ARGUMENT, "max_pool_grad: index " + std::to_string(indices[i]) + " at position " +
                                                     std::to_string(i) + " is out of range [" + std::to_string(begin) + ", " +
                                                     std::to_string(begin + elements) + ") of its image and channel");
      }
      sums[static_cast<std::size_t>(indices[i] - begin)] += double{call.input<T>(0)[i]};
    }
    for (std::int64_t i = 0; i < elements; ++i) call.output<T>(0)[plane * elements + i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
  }
}

/// y = sum of x over each window, divided by the number of its elements inside the padded image, or inside x.
///
/// Shapes      x (N, C, d...), y (N, C, windows...), one or two spatial dimensions.
/// Dtypes      f32, f64, summed in f64.
/// Attributes  kernel, strides, padding, count_include_pad; ceil_mode is implied by the shape of y.
template <class T>
void average_pool(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_window>();
  const Geometry g(call.inputs[0], call.outputs[0], attributes);
  const bool padded = attributes.count_include_pad != 0;
  T* y = call.output<T>(0);
  for (std::int64_t plane = 0; plane < g.planes; ++plane) {
    const T* x = call.input<T>(0) + plane * g.h.size * g.w.size;
    for (std::int64_t row = 0; row < g.h.count; ++row) {
      for (std::int64_t column = 0; column < g.w.count; ++column, ++y) {
        double sum = 0;
        for_each_seen(g, row, column, [&](std::int64_t i) { sum += double{x[i]}; });
        *y = static_cast<T>(sum / static_cast<double>(g.h.elements(row, padded) * g.w.elements(column, padded)));
      }
    }
  }
}

/// dx = sum of dy over the windows that contain it, each divided as in average_pool.
///
/// Shapes      dy (N, C, windows...), dx (N, C, d...).
/// Dtypes      f32, f64, summed in f64.
/// Attributes  those of average_pool.
template <class T>
void average_pool_grad(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_window>();
  const Geometry g(call.outputs[0], call.inputs[0], attributes);
  const bool padded = attributes.count_include_pad != 0;
  const std::int64_t elements = g.h.size * g.w.size;
  const T* dy = call.input<T>(0);
  std::vector<double> sums;
  for (std::int64_t plane = 0; plane < g.planes; ++plane) {
    sums.assign(static_cast<std::size_t>(elements), 0.0);
    for (std::int64_t row = 0; row < g.h.count; ++row) {
      for (std::int64_t column = 0; column < g.w.count; ++column, ++dy) {
        const double share = double{*dy} / static_cast<double>(g.h.elements(row, padded) * g.w.elements(column, padded));
        for_each_seen(g, row, column, [&](std::int64_t i) { sums[static_cast<std::size_t>(i)] += share; });
      }
    }
    for (std::int64_t i = 0; i < elements; ++i) call.output<T>(0)[plane * elements + i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
  }
}

}  // namespace
TENON_KERNEL(max_pool, float, double, std::int8_t, std::uint8_t)
TENON_KERNEL(max_pool_grad, float, double)
TENON_KERNEL(average_pool, float, double)
TENON_KERNEL(average_pool_grad, float, double)
}  // namespace tenon::reference
