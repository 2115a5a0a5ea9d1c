// SPDX-License-Identifier: Apache-2.0
// onnx/rules/roi.cpp - regions of images, resampled to one size.
#include "onnx/rules/roi.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules/dtypes.h"
#include "onnx/rules/numbers.h"
#include "onnx/rules/positions.h"
#include "onnx/rules/sampling.h"
#include "onnx/rules/shapes.h"

namespace tenon::onnx {
namespace {

/// Of the grids of samples of adaptive regions: for each one, nodes are added to the graph.
constexpr std::size_t max_grids = 256;
/// Of bins and samples along an axis, so that their products fit 64 bits; also of the indices of pooled windows.
constexpr std::int64_t max_samples = std::int64_t{1} << 24;

/// Attributes and operands of RoiAlign. Images x (N, C, H, W) are in rows.
struct Align {
  Value rows;
  Shape x;
  Value rois;   ///< (R, 4): x1, y1, x2, y2, in the dtype of the rows
  Value batch;  ///< i64 (R)
  std::int64_t height = 1, width = 1;
  double scale = 1;
  bool half_pixel = true, max = false;
};

/// The samples along one axis, `per_bin` in each of `bins`: taps in the shape (R, bins * per_bin), with a dimension of size 1 for the other
/// axis at `other`. `first` and `last` are the columns of the region's ends.
std::vector<Tap> region_taps(Node& node, const Align& align, std::int64_t first, std::int64_t bins, std::int64_t per_bin, std::int64_t n,
                             std::int64_t other) {
  const auto end_of = [&](std::int64_t column) {
    const Value end = ops::mul(ops::slice(align.rois, 1, column, column + 1), align.scale);
    return align.half_pixel ? ops::sub(end, 0.5) : end;
  };
  const Value start = end_of(first);
  Value size = ops::sub(end_of(first + 2), start);
  if (!align.half_pixel) size = ops::maximum(size, 1);
  const Value bin = ops::div(size, static_cast<double>(bins));
  Tensor places = Tensor::empty(DType::f64, {1, bins * per_bin});
  double* place = places.data<double>();
  for (std::int64_t i = 0; i < bins * per_bin; ++i) {
    const std::int64_t in_bin = i % per_bin, whole = i / per_bin;
    place[i] = static_cast<double>(whole) + (static_cast<double>(in_bin) + 0.5) / static_cast<double>(per_bin);
  }
  const Value position = ops::unsqueeze(ops::add(start, ops::mul(bin, node.constant(places.to(bin.dtype())))), {other});
  // Up to one pixel outside of the image the sample is that of its edge; beyond, it is 0.
  const auto limit = [&](double value) { return constant_like(position, value); };
  const Value inside = ops::logical_and(ops::greater_equal(position, limit(-1)), ops::less_equal(position, limit(static_cast<double>(n))));
  const Value clamped = ops::clip(position, 0, static_cast<double>(n - 1)), before = ops::floor(clamped),
              beyond = ops::sub(clamped, before);
  return {{pixel_index(before, n), 1 - beyond, inside}, {pixel_index(before + 1, n), beyond, inside}};
}

/// All regions with one grid of samples per bin: (R, C, height, width).
Value align_regions(Node& node, const Align& align, std::int64_t grid_height, std::int64_t grid_width) {
  const std::int64_t regions = align.batch.shape()[0], channels = align.x[1];
  const std::vector<std::vector<Tap>> axes{region_taps(node, align, 1, align.height, grid_height, align.x[2], 2),
                                           region_taps(node, align, 0, align.width, grid_width, align.x[3], 1)};
  const Value pixels = node.constant(Tensor::scalar(product_of(node, align.x, 2, 4)));
  const Value first = ops::reshape(ops::mul(align.batch, pixels), Shape{regions, 1, 1});
  const auto add = [](Value a, Value b) { return ops::add(a, b); };
  const auto larger = [](Value a, Value b) { return ops::maximum(a, b); };
  const Value samples = align.max ? sample(node, align.rows, first, axes, {align.x[3], 1}, larger)
                                  : sample(node, align.rows, first, axes, {align.x[3], 1}, add);
  const Value bins = ops::reshape(samples, Shape{regions, align.height, grid_height, align.width, grid_width, channels});
  return ops::transpose(align.max ? ops::reduce_max(bins, {2, 4}) : ops::reduce_mean(bins, {2, 4}), {0, 3, 1, 2});
}

/// Samples per bin along an axis of an adaptive region, ceil(size of the region / bins). T: what the reference computes in.
template <class T>
std::int64_t adaptive_samples(const Node& node, double start, double end, const Align& align, std::int64_t bins) {
  const T scale = static_cast<T>(align.scale), offset = align.half_pixel ? T(0.5) : T(0);
  T size = (static_cast<T>(end) * scale - offset) - (static_cast<T>(start) * scale - offset);
  if (!align.half_pixel) size = std::max(size, T(1));
  const T samples = std::ceil(size / static_cast<T>(bins));
  if (!(samples <= static_cast<T>(max_samples))) {
    node.unsupported(fmt::format("expected regions of at most {} samples per bin, got one from {} to {}", max_samples, start, end));
  }
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::max(samples, T(0))), 0);
}

/// Regions whose number of samples depends on their size: those with the same grid together.
Value align_adaptively(Node& node, const Align& align, const std::vector<double>& rois) {
  const bool wide = align.rois.dtype() == DType::f64;
  const auto samples = [&](double start, double end, std::int64_t bins) {
    return wide ? adaptive_samples<double>(node, start, end, align, bins) : adaptive_samples<float>(node, start, end, align, bins);
  };
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> by_grid;
  for (std::size_t r = 0; r < rois.size() / 4; ++r) {
    const double* roi = &rois[r * 4];
    by_grid[{samples(roi[1], roi[3], align.height), samples(roi[0], roi[2], align.width)}].push_back(static_cast<std::int64_t>(r));
  }
  if (by_grid.size() > max_grids) {
    node.unsupported(
        fmt::format("sampling_ratio is 0: expected regions of at most {} sizes, got {}; export the model with a sampling_ratio", max_grids,
                    by_grid.size()));
  }
  std::vector<Value> parts;
  std::vector<std::int64_t> place(rois.size() / 4);
  std::int64_t next = 0;
  for (const auto& [grid, regions] : by_grid) {
    for (const std::int64_t region : regions) place[static_cast<std::size_t>(region)] = next++;
    const auto count = static_cast<std::int64_t>(regions.size());
    if (grid.first == 0 || grid.second == 0) {  // a region without area has no samples
      parts.push_back(ops::expand(node.scalar(align.rows.dtype(), 0), Shape{count, align.x[1], align.height, align.width}));
      continue;
    }
    Align part = align;
    const Value selected = node.constant(Node::integers_tensor(regions));
    part.rois = ops::gather(align.rois, selected);
    part.batch = ops::gather(align.batch, selected);
    check_listed(node, product_of(node, std::max(align.height, align.width), std::max(grid.first, grid.second)));
    parts.push_back(align_regions(node, part, grid.first, grid.second));
  }
  if (parts.size() == 1) return parts[0];
  return ops::gather(ops::concat(parts, 0), node.constant(Node::integers_tensor(place)));
}

}  // namespace

void roi_align(Node& node, bool half_pixel) {
  const Value x = node.input(0), rois = node.input(1), batch = node.input(2);
  const Shape shape = x.shape();
  if (shape.rank() != 4 || rois.shape().rank() != 2 || rois.shape()[1] != 4 || batch.shape() != Shape{rois.shape()[0]}) {
    node.fail(fmt::format("expected x (N, C, H, W), rois (R, 4) and batch_indices (R), got {}, {} and {}", shape.str(), rois.shape().str(),
                          batch.shape().str()));
  }
  Align align;
  align.x = shape;
  align.height = node.integer("output_height", 1);
  align.width = node.integer("output_width", 1);
  align.scale = node.number("spatial_scale", 1);
  const std::int64_t ratio = std::max<std::int64_t>(node.integer("sampling_ratio", 0), 0);
  for (const std::int64_t size : {align.height, align.width, std::max<std::int64_t>(ratio, 1)}) {
    if (size < 1 || size > max_samples) {
      node.fail(fmt::format("expected an output size and a sampling_ratio of at most {}, got {}", max_samples, size));
    }
  }
  const std::string_view mode = node.text("mode", "avg");
  if (mode != "avg" && mode != "max") node.fail(fmt::format("expected a mode avg or max, got \"{}\"", mode));
  align.max = mode == "max";
  const std::string_view coordinates = node.text("coordinate_transformation_mode", half_pixel ? "half_pixel" : "output_half_pixel");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel") {
    node.fail(fmt::format("expected a coordinate_transformation_mode half_pixel or output_half_pixel, got \"{}\"", coordinates));
  }
  align.half_pixel = coordinates == "half_pixel";
  const Shape result{rois.shape()[0], shape[1], align.height, align.width};
  if (result.count() == 0) return node.output(0, Tensor::zeros(x.dtype(), result));
  if (shape.count() == 0) node.fail(fmt::format("expected pixels in x, got {}", shape.str()));
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  align.rows = pixel_rows(node, cast_to(x, dtype));
  align.rois = cast_to(rois, dtype);
  align.batch = cast_to(batch, DType::i64);
  if (ratio > 0) {
    check_listed(node, product_of(node, std::max(align.height, align.width), ratio));
    return node.output(0, cast_to(align_regions(node, align, ratio, ratio), x.dtype()));
  }
  const Tensor known = node.known_if_constant(1);
  if (!known.defined()) {
    node.unsupported(
        "sampling_ratio is 0, so that the number of samples depends on the elements of rois: expected constant rois, got computed ones; "
        "export the model with a sampling_ratio of 1 or more");
  }
  node.output(0, cast_to(align_adaptively(node, align, known.to(DType::f64).to_vector<double>()), x.dtype()));
}

namespace {

/// Elements [begin, end) of an axis.
struct Window {
  std::int64_t begin, end;

  bool is_empty() const { return begin >= end; }
};

/// The bins of a region along an axis of n elements, which overlap where the region has fewer elements than bins.
/// Source  Girshick: Fast R-CNN (2015), section 2.1; the rounding is that of ONNX Runtime.
std::vector<Window> bins_of(double start, double end, std::int64_t bins, std::int64_t n) {
  // A region far outside of the image has empty bins; the clamp keeps the conversion to integers defined.
  const double most = static_cast<double>(n) * 2 + 2;
  const double first = std::clamp(std::round(start), -most, most), last = std::clamp(std::round(end), -most, most);
  const double size = std::max(last - first + 1, 1.0) / static_cast<double>(bins);
  const auto place = [&](double x) { return static_cast<std::int64_t>(std::clamp(x + first, 0.0, static_cast<double>(n))); };
  std::vector<Window> windows;
  for (std::int64_t i = 0; i < bins; ++i) {
    windows.push_back({place(std::floor(static_cast<double>(i) * size)), place(std::ceil(static_cast<double>(i + 1) * size))});
  }
  return windows;
}

}  // namespace

void max_roi_pool(Node& node) {
  const Value x = node.input(0);
  const Shape shape = x.shape(), regions = node.shape(1);
  const std::vector<std::int64_t>& pooled = node.integers("pooled_shape");
  if (shape.rank() != 4 || regions.rank() != 2 || regions[1] != 5 || pooled.size() != 2) {
    node.fail(fmt::format("expected x (N, C, H, W), rois (R, 5) and a pooled_shape of two sizes, got {}, {} and {} sizes", shape.str(),
                          regions.str(), pooled.size()));
  }
  if (std::ranges::any_of(pooled, [](std::int64_t size) { return size < 1 || size > max_samples; })) {
    node.fail(fmt::format("expected a pooled_shape of 1 to {}, got {} and {}", max_samples, pooled[0], pooled[1]));
  }
  const Shape result{regions[0], shape[1], pooled[0], pooled[1]};
  if (result.count() == 0) return node.output(0, Tensor::zeros(x.dtype(), result));
  if (shape.count() == 0) node.fail(fmt::format("expected pixels in x, got {}", shape.str()));
  const Tensor known = node.known_if_constant(1);
  if (!known.defined()) {
    node.unsupported("the sizes of the pooled windows depend on the elements of rois: expected constant rois, got computed ones");
  }
  const std::vector<double> rois = known.to(DType::f64).to_vector<double>();
  const std::int64_t bins = product_of(node, pooled[0], pooled[1]);
  const double scale = node.number("spatial_scale", 1);
  const auto check_count = [&](std::int64_t count) {
    if (count > max_samples) node.unsupported(fmt::format("expected windows of at most {} elements in all, got {}", max_samples, count));
  };
  check_count(product_of(node, bins, regions[0]));
  std::vector<std::pair<Window, Window>> windows;
  std::vector<std::int64_t> images;
  Window largest{0, 1}, widest{0, 1};
  for (std::size_t r = 0; r < rois.size(); r += 5) {
    const double image = rois[r];
    if (!(image >= 0 && image < static_cast<double>(shape[0]))) {
      node.fail(fmt::format("expected rois of images 0 to {}, got {}", shape[0] - 1, image));
    }
    if (!std::all_of(&rois[r], &rois[r] + 5, [&](double value) { return std::isfinite(value * scale); })) {
      node.fail("expected finite rois and a finite spatial_scale");
    }
    const std::vector<Window> columns = bins_of(rois[r + 1] * scale, rois[r + 3] * scale, pooled[1], shape[3]);
    for (const Window& row : bins_of(rois[r + 2] * scale, rois[r + 4] * scale, pooled[0], shape[2])) {
      for (const Window& column : columns) {
        windows.emplace_back(row, column);
        images.push_back(static_cast<std::int64_t>(image));
        largest.end = std::max(largest.end, row.end - row.begin);
        widest.end = std::max(widest.end, column.end - column.begin);
      }
    }
  }
  // Windows of one size, which repeat their last row and column: that does not change a maximum.
  const std::int64_t height = largest.end, width = widest.end, area = product_of(node, height, width);
  check_count(product_of(node, area, static_cast<std::int64_t>(windows.size())));
  std::vector<std::int64_t> indices;
  Tensor occupied = Tensor::empty(DType::boolean, {static_cast<std::int64_t>(windows.size()), 1});
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const auto& [row, column] = windows[w];
    const bool is_empty = row.is_empty() || column.is_empty();
    occupied.data<bool>()[w] = !is_empty;
    for (std::int64_t i = 0; i < area; ++i) {
      const std::int64_t y = std::min(row.begin + i / width, row.end - 1), z = std::min(column.begin + i % width, column.end - 1);
      indices.push_back(is_empty ? 0 : (images[w] * shape[2] + y) * shape[3] + z);
    }
  }
  const Value places = node.constant(Tensor::of(indices, {static_cast<std::int64_t>(windows.size()), area}));
  const Value maxima = ops::reduce_max(ops::gather(pixel_rows(node, x), places), {1});
  const Value bins_or_zero = ops::where(node.constant(occupied), maxima, constant_like(maxima, 0));
  const Value y = ops::reshape(bins_or_zero, Shape{regions[0], pooled[0], pooled[1], shape[1]});
  node.output(0, ops::transpose(y, {0, 3, 1, 2}));
}

}  // namespace tenon::onnx
