// SPDX-License-Identifier: Apache-2.0
// ops/resize.cpp - resizing of images.
#include <tenon/sdk/kernel.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tenon::reference {
namespace {

/// The sources of an element of the resized image along one dimension: at most two elements of the image.
struct Neighbours {
  std::int64_t index[2];
  double weight[2];
};

/// The coordinate of element i of `to` in an image of `from` elements, by ONNX's coordinate_transformation_mode.
double coordinate(std::int64_t i, std::int64_t from, std::int64_t to, double scale, std::uint32_t mode) {
  const auto x = static_cast<double>(i);
  switch (mode) {
    case TENON_COORDINATES_ASYMMETRIC:
      return x / scale;
    case TENON_COORDINATES_ALIGN_CORNERS:
      return to == 1 ? 0.0 : x * static_cast<double>(from - 1) / static_cast<double>(to - 1);
    case TENON_COORDINATES_PYTORCH_HALF_PIXEL:
      return to == 1 ? 0.0 : (x + 0.5) / scale - 0.5;
    default:
      return (x + 0.5) / scale - 0.5;
  }
}

double rounded(double x, std::uint32_t mode) {
  switch (mode) {
    case TENON_ROUND_FLOOR:
      return std::floor(x);
    case TENON_ROUND_CEIL:
      return std::ceil(x);
    case TENON_ROUND_PREFER_CEIL:
      return std::floor(x + 0.5);
    default:
      return std::ceil(x - 0.5);
  }
}

std::vector<Neighbours> neighbours(std::int64_t from, std::int64_t to, double scale, const tenon_attributes_resize& a) {
  std::vector<Neighbours> all;
  const auto inside = [&](double i) { return static_cast<std::int64_t>(std::clamp(i, 0.0, static_cast<double>(from - 1))); };
  for (std::int64_t i = 0; i < to; ++i) {
    const double x = coordinate(i, from, to, scale, a.coordinates);
    if (a.mode == TENON_RESIZE_NEAREST) {
      all.push_back({{inside(rounded(x, a.rounding)), 0}, {1, 0}});
    } else {
      const double low = std::floor(x);
      all.push_back({{inside(low), inside(low + 1)}, {1 - (x - low), x - low}});
    }
  }
  return all;
}

/// One spatial dimension of x becomes one of y. An image (N, C, L) has one row.
struct Geometry {
  std::int64_t planes, h = 1, w = 1;
  std::vector<Neighbours> rows{{{0, 0}, {1, 0}}}, columns;

  Geometry(const sdk::Operand& x, const sdk::Operand& y, const tenon_attributes_resize& a) : planes(x.shape[0] * x.shape[1]) {
    for (std::uint32_t d = 2; d < x.rank; ++d) {
      const bool last = d + 1 == x.rank;
      (last ? w : h) = x.shape[d];
      (last ? columns : rows) = neighbours(x.shape[d], y.shape[d], a.scales[d], a);
    }
  }
  /// body(y, x, weight) for every pair of elements, indexed within a plane, with a weight.
  template <class Body>
  void for_each_pair(Body&& body) const {
    std::int64_t y = 0;
    for (const Neighbours& row : rows) {
      for (const Neighbours& column : columns) {
        for (int i = 0; i < 4; ++i) {
          const double weight = row.weight[i / 2] * column.weight[i % 2];
          if (weight != 0) body(y, row.index[i / 2] * w + column.index[i % 2], weight);
        }
        ++y;
      }
    }
  }
};

/// Sums in f64 for each plane of the result; body(sums, plane, pair...) adds to them.
template <class T, class Body>
void for_each_plane(const sdk::Call& call, std::int64_t planes, const Body& body) {
  if (planes == 0) return;
  const std::int64_t elements = call.outputs[0].count / planes;
  std::vector<double> sums;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    sums.assign(static_cast<std::size_t>(elements), 0.0);
    body(plane, sums);
    for (std::int64_t i = 0; i < elements; ++i) call.output<T>(0)[plane * elements + i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
  }
}

/// y[i] = sum over the elements of x next to i's coordinate of their weight times x; each dimension has its own weights.
///
/// Shapes      x (N, C, d...), y (N, C, e...), one or two spatial dimensions.
/// Dtypes      f32, f64, summed in f64.
/// Attributes  mode, coordinates, rounding (nearest), scales.
/// Source      ONNX's Resize, opset 13.
template <class T>
void resize(const sdk::Call& call) {
  const Geometry g(call.inputs[0], call.outputs[0], call.attr<tenon_attributes_resize>());
  for_each_plane<T>(call, g.planes, [&](std::int64_t plane, std::vector<double>& sums) {
    const T* x = call.input<T>(0) + plane * g.h * g.w;
    g.for_each_pair(
        [&](std::int64_t y, std::int64_t from, double weight) { sums[static_cast<std::size_t>(y)] += weight * double{x[from]}; });
  });
}

/// dx[k] = sum over y of the weight of x[k] in it, times dy: the transpose.
///
/// Shapes      dy (N, C, e...), dx (N, C, d...).
/// Dtypes      f32, f64, summed in f64.
/// Attributes  those of resize.
template <class T>
void resize_grad(const sdk::Call& call) {
  const Geometry g(call.outputs[0], call.inputs[0], call.attr<tenon_attributes_resize>());
  const auto results = static_cast<std::int64_t>(g.rows.size() * g.columns.size());
  for_each_plane<T>(call, g.planes, [&](std::int64_t plane, std::vector<double>& sums) {
    const T* dy = call.input<T>(0) + plane * results;
    g.for_each_pair([&](std::int64_t y, std::int64_t to, double weight) { sums[static_cast<std::size_t>(to)] += weight * double{dy[y]}; });
  });
}

}  // namespace
TENON_KERNEL(resize, float, double)
TENON_KERNEL(resize_grad, float, double)
}  // namespace tenon::reference
