// SPDX-License-Identifier: Apache-2.0
// onnx/rules/detection.cpp - regions and boxes, convolutions at computed positions, and the reverse of pools and columns.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tenon/functions.h>

#include "onnx/rules.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/non_max_suppression.h"
#include "onnx/rules/positions.h"
#include "onnx/rules/roi.h"
#include "onnx/rules/sampling.h"
#include "onnx/rules/shapes.h"
#include "onnx/rules/windows.h"

namespace tenon::onnx {
namespace {

using Sizes = std::vector<std::int64_t>;

/// The number of windows along spatial dimension i of `size` elements; below 1: none.
std::int64_t window_count(std::int64_t size, std::int64_t kernel, const WindowOptions& options, std::size_t i) {
  const std::int64_t room = size + options.padding[i].first + options.padding[i].second - window_extent(kernel, options, i);
  return room < 0 ? 0 : room / options.strides[i] + 1;
}

/// The position in x of each element of the windows along spatial dimension i, without offsets: (kernel, 1, windows, 1) for the first
/// dimension, (1, kernel, 1, windows) for the second one.
Value window_positions(Node& node, std::int64_t kernel, std::int64_t windows, const WindowOptions& options, std::size_t i, DType dtype) {
  const Value first =
      ops::add(positions_along(node, windows, i + 2, 4, options.strides[i]), static_cast<double>(-options.padding[i].first));
  return ops::cast(ops::add(positions_along(node, kernel, i, 4, options.dilations[i]), first), dtype);
}

/// Conv with the elements of each window sampled at their positions plus offsets (N, groups of channels * kernel * 2, windows...).
void deform_conv(Node& node) {
  const Value x = node.input(0), w = node.input(1), offset = node.input(2), bias = node.optional_input(3), mask = node.optional_input(4);
  const Shape shape = x.shape(), filters = w.shape(), offsets = offset.shape();
  if (shape.rank() != 4 || filters.rank() != 4 || offsets.rank() != 4) {
    node.unsupported(fmt::format("expected images (N, C, H, W), filters and offsets of four dimensions, got {}, {} and {}", shape.str(),
                                 filters.str(), offsets.str()));
  }
  const Sizes kernel(filters.begin() + 2, filters.end());
  const Sizes& given = node.integers("kernel_shape");
  if (!given.empty() && given != kernel) node.fail(fmt::format("expected a kernel_shape of the sizes of the filters {}", filters.str()));
  const WindowOptions options = window_options(node, shape, kernel);
  const std::int64_t groups = node.integer("group", 1), offset_groups = node.integer("offset_group", 1);
  const bool divides = groups >= 1 && groups <= shape[1] && offset_groups >= 1 && offset_groups <= shape[1] && shape[1] % groups == 0 &&
                       shape[1] % offset_groups == 0 && filters[0] % groups == 0 && filters[1] == shape[1] / groups;
  if (!divides) {
    node.fail(
        fmt::format("expected filters (O, C / group, H, W) and numbers of groups that divide C and O, got x {}, filters {}, group {} "
                    "and offset_group {}",
                    shape.str(), filters.str(), groups, offset_groups));
  }
  const std::int64_t taps = product_of(node, kernel[0], kernel[1]);
  const std::int64_t height = window_count(shape[2], kernel[0], options, 0), width = window_count(shape[3], kernel[1], options, 1);
  const std::int64_t masks = product_of(node, offset_groups, taps);
  if (offsets != Shape{shape[0], product_of(node, masks, 2), height, width}) {
    node.fail(
        fmt::format("expected offsets ({},{},{},{}) for x {}, got {}", shape[0], 2 * masks, height, width, shape.str(), offsets.str()));
  }
  if (mask.present() && mask.shape() != Shape{shape[0], masks, height, width}) {
    node.fail(fmt::format("expected a mask ({},{},{},{}), got {}", shape[0], masks, height, width, mask.shape().str()));
  }
  if (bias.present() && bias.shape() != Shape{filters[0]}) {
    node.fail(fmt::format("expected a bias ({}), got {}", filters[0], bias.shape().str()));
  }
  const Shape result{shape[0], filters[0], height, width};
  if (result.count() == 0) return node.output(0, Tensor::zeros(x.dtype(), result));
  if (shape.count() == 0) node.fail(fmt::format("expected pixels in x, got {}", shape.str()));
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  // Images of one group of channels each: (N * offset groups, channels of a group, H, W).
  const std::int64_t images = shape[0] * offset_groups, channels = shape[1] / offset_groups;
  const Value image = ops::reshape(cast_to(x, dtype), Shape{images, channels, shape[2], shape[3]});
  const Value shifts = ops::reshape(cast_to(offset, dtype), Shape{images, kernel[0], kernel[1], 2, height, width});
  const Shape points{images, kernel[0], kernel[1], height, width};
  std::vector<std::vector<Tap>> axes;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto coordinate = static_cast<std::int64_t>(i);
    const Value shift = ops::reshape(ops::slice(shifts, 3, coordinate, coordinate + 1), points);
    const Value position = window_positions(node, kernel[i], i == 0 ? height : width, options, i, dtype);
    axes.push_back(linear_taps(ops::add(position, shift), shape[i + 2]));
  }
  const Value first = positions_along(node, images, 0, 5, product_of(node, shape, 2, 4));
  const auto add = [](Value a, Value b) { return ops::add(a, b); };
  Value columns = sample(node, pixel_rows(node, image), first, axes, {shape[3], 1}, add);
  if (mask.present()) {
    columns = ops::mul(columns, ops::reshape(cast_to(mask, dtype), Shape{images, kernel[0], kernel[1], height, width, 1}));
  }
  // (images, kernel, windows, channels) to (N, group, channels of a group * kernel, windows), which the filters multiply.
  const std::int64_t windows = height * width, depth = filters[1] * taps;
  columns = ops::transpose(ops::reshape(columns, Shape{images, taps, windows, channels}), {0, 3, 1, 2});
  const Value weights = ops::reshape(cast_to(w, dtype), Shape{groups, filters[0] / groups, depth});
  Value y = ops::matmul(weights, ops::reshape(columns, Shape{shape[0], groups, depth, windows}));
  y = ops::reshape(y, result);
  if (bias.present()) y = ops::add(y, ops::reshape(cast_to(bias, dtype), Shape{filters[0], 1, 1}));
  node.output(0, cast_to(y, x.dtype()));
}

/// Zeros with the elements of x at `indices`, which count the elements of a tensor of the size that the attributes give. A larger
/// output_shape adds zeros at the ends.
void max_unpool(Node& node) {
  const Value x = node.input(0), indices = node.input(1);
  const Shape shape = x.shape();
  const Sizes& kernel = node.integers("kernel_shape");
  if (indices.shape() != shape)
    node.fail(fmt::format("expected an index for each element of x {}, got {}", shape.str(), indices.shape().str()));
  const WindowOptions options = window_options(node, shape, kernel);
  Sizes sizes(shape.begin(), shape.end());
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t spread = shape[i + 2] == 0 ? 0 : product_of(node, shape[i + 2] - 1, options.strides[i]);
    if (spread > (std::int64_t{1} << 62)) node.fail(fmt::format("expected a result of at most 2^62 elements, got x {}", shape.str()));
    sizes[i + 2] = std::max<std::int64_t>(spread + kernel[i] - options.padding[i].first - options.padding[i].second, 0);
  }
  const Shape inferred = shape_of(node, sizes);
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(shape.rank(), {0, 0});
  Shape result = inferred;
  if (node.has_input(2)) {
    result = shape_of(node, node.known_integers(2));
    bool fits = result.rank() == inferred.rank();
    for (std::size_t i = 0; fits && i < result.rank(); ++i) {
      widths[i].second = result[i] - inferred[i];
      fits = widths[i].second >= 0;
    }
    if (!fits) node.fail(fmt::format("expected an output_shape of at least {}, got {}", inferred.str(), result.str()));
  }
  if (result.count() == 0) return node.output(0, Tensor::zeros(x.dtype(), result));
  const Shape elements{shape.count()};
  Value y = ops::expand(node.scalar(x.dtype(), 0), Shape{inferred.count()});
  if (shape.count() > 0 && inferred.count() > 0) {
    y = ops::scatter_elements(y, ops::reshape(indices, elements), ops::reshape(x, elements), 0);
  }
  y = ops::reshape(y, inferred);
  node.output(0, result == inferred ? y : ops::pad(y, widths));
}

/// Where the elements (kernel, windows) of columns belong in an image of the sizes: its row-major position, or the number of pixels if they
/// are outside.
Sizes column_positions(const Sizes& image, const Sizes& kernel, const Sizes& windows, const WindowOptions& options) {
  std::int64_t taps = 1, count = 1, pixels = 1;
  for (std::size_t i = 0; i < image.size(); ++i) {
    taps *= kernel[i];
    count *= windows[i];
    pixels *= image[i];
  }
  Sizes positions;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t window = 0; window < count; ++window) {
      std::int64_t rest_tap = tap, rest_window = window, position = 0, stride = 1;
      bool is_inside = true;
      for (std::size_t i = image.size(); i-- > 0;) {
        const std::int64_t at =
            rest_window % windows[i] * options.strides[i] + rest_tap % kernel[i] * options.dilations[i] - options.padding[i].first;
        is_inside = is_inside && at >= 0 && at < image[i];
        position += is_inside ? at * stride : 0;
        stride *= image[i];
        rest_tap /= kernel[i];
        rest_window /= windows[i];
      }
      positions.push_back(is_inside ? position : pixels);
    }
  }
  return positions;
}

void col2im(Node& node) {
  const Value x = node.input(0);
  const Sizes image = node.known_integers(1), kernel = node.known_integers(2);
  const Shape shape = x.shape();
  if (shape.rank() != 3 || image.size() != kernel.size()) {
    node.fail(fmt::format("expected columns (N, C * block, L), and as many sizes in image_shape as in block_shape, got {}, {} and {}",
                          shape.str(), image.size(), kernel.size()));
  }
  Sizes sizes{shape[0], 1};
  sizes.insert(sizes.end(), image.begin(), image.end());
  const WindowOptions options = window_options(node, shape_of(node, sizes), kernel);
  std::int64_t taps = 1, count = 1;
  Sizes windows;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    taps = product_of(node, taps, kernel[i]);
    windows.push_back(window_count(image[i], kernel[i], options, i));
    count = product_of(node, count, windows[i]);
  }
  if (shape[1] % taps != 0 || shape[2] != count) {
    node.fail(fmt::format("expected columns (N, C * {}, {}), got {}", taps, count, shape.str()));
  }
  sizes[1] = shape[1] / taps;
  const Shape result = shape_of(node, sizes);
  if (result.count() == 0) return node.output(0, Tensor::zeros(x.dtype(), result));
  if (x.dtype() == DType::boolean) node.unsupported("expected numbers to add, got bool");
  const bool is_padded = std::ranges::any_of(options.padding, [](const auto& pads) { return pads.first < 0 || pads.second < 0; });
  if (is_padded) node.fail("expected padding of 0 or more");
  if (shape.count() == 0) return node.output(0, ops::expand(node.scalar(x.dtype(), 0), result));
  if (kernel.size() <= 2) {
    const auto sums = [&](Value columns) { return ops::col2im(columns, image, kernel, options); };
    return node.output(0, computed_in(arithmetic_dtype(x.dtype()), sums, x));
  }
  // What is outside is added to one element after those of the image.
  const std::int64_t pixels = product_of(node, result, 2, result.rank()), rows = shape[0] * sizes[1],
                     elements = product_of(node, taps, count);
  check_listed(node, elements);
  const Value positions = node.constant(Node::integers_tensor(column_positions(image, kernel, windows, options)));
  const auto sums = [&](Value columns) {
    const Value zeros = ops::expand(node.scalar(columns.dtype(), 0), Shape{rows, pixels + 1});
    return ops::slice(ops::scatter_add(zeros, positions, ops::reshape(columns, Shape{rows, elements}), 1), 1, 0, pixels);
  };
  node.output(0, ops::reshape(computed_in(arithmetic_dtype(x.dtype()), sums, x), result));
}

}  // namespace

const std::vector<Rule>& detection_rules() {
  static const std::vector<Rule> rules = {
      {"Col2Im", 18, col2im},
      {"DeformConv", 19, deform_conv},
      {"MaxRoiPool", 1, max_roi_pool},
      {"MaxUnpool", 9, max_unpool},
      {"NonMaxSuppression", 10, non_max_suppression},
      {"RoiAlign", 10, [](Node& node) { roi_align(node, false); }},
      {"RoiAlign", 16, [](Node& node) { roi_align(node, true); }},
  };
  return rules;
}

}  // namespace tenon::onnx
