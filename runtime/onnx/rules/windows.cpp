// SPDX-License-Identifier: Apache-2.0
// onnx/rules/windows.cpp - attributes of windows, convolutions and transposed convolutions of one to three spatial dimensions.
#include "onnx/rules/windows.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace tenon::onnx {
namespace {

/// The largest kernel, stride, dilation or padding that Tenon's ops take: sums of their products and of sizes fit 64 bits.
constexpr std::int64_t max_window = 0x7fffffff;

using Sizes = std::vector<std::int64_t>;
using Padding = std::pair<std::int64_t, std::int64_t>;

/// A list attribute of `count` elements of at least `lowest`; a missing list is `count` times `otherwise`.
Sizes checked_list(const Node& node, const char* name, std::size_t count, std::int64_t otherwise, std::int64_t lowest) {
  Sizes list = node.integers(name);
  if (list.empty()) list.assign(count, otherwise);
  if (list.size() != count) node.fail(fmt::format("expected {} elements in {}, got {}", count, name, list.size()));
  for (const std::int64_t value : list) {
    if (value < lowest || value > max_window) {
      node.fail(fmt::format("expected {} of {} to {}, got {}", name, lowest, max_window, value));
    }
  }
  return list;
}

/// The padding of SAME_UPPER and SAME_LOWER: ceil(size / stride) windows.
Padding same_padding(std::int64_t size, std::int64_t extent, std::int64_t stride, bool upper) {
  const std::int64_t last = size == 0 ? 0 : (size - 1) / stride * stride;
  const std::int64_t total = std::max<std::int64_t>(last + extent - size, 0);
  const std::int64_t before = upper ? total / 2 : total - total / 2;
  return {before, total - before};
}

/// The sizes of filters (O, C / group, k...), compared with kernel_shape.
Sizes kernel_of(const Node& node, const Shape& x, const Shape& w) {
  if (x.rank() < 3 || w.rank() != x.rank()) {
    node.fail(fmt::format("expected images (N, C, d...) and filters of as many dimensions, got {} and {}", x.str(), w.str()));
  }
  const Sizes kernel(w.begin() + 2, w.end());
  const Sizes& given = node.integers("kernel_shape");
  if (!given.empty() && given != kernel) {
    node.fail(fmt::format("expected a kernel_shape of the sizes of the filters {}, got another one", w.str()));
  }
  return kernel;
}

/// The product of sizes. Errors: more than 2^62.
std::int64_t product(std::initializer_list<std::int64_t> sizes) {
  return Shape(sizes).count();
}

/// Options of the dimensions [first, last) of `options`.
WindowOptions part_of(const WindowOptions& options, std::ptrdiff_t first, std::ptrdiff_t last) {
  WindowOptions part;
  part.strides.assign(options.strides.begin() + first, options.strides.begin() + last);
  part.dilations.assign(options.dilations.begin() + first, options.dilations.begin() + last);
  part.padding.assign(options.padding.begin() + first, options.padding.begin() + last);
  return part;
}

/// Options of the windows along the depth of an image (depth, height * width).
WindowOptions depth_of(const WindowOptions& options) {
  WindowOptions depth = part_of(options, 0, 1);
  depth.strides.push_back(1);
  depth.dilations.push_back(1);
  depth.padding.emplace_back(0, 0);
  return depth;
}

ConvOptions plane_of(const ConvOptions& options) {
  ConvOptions plane;
  static_cast<WindowOptions&>(plane) = part_of(options, 1, 3);
  plane.groups = options.groups;
  return plane;
}

/// True if windows are single elements of each plane (H, W) and visit all of them.
bool is_along_depth(const Shape& filters, const WindowOptions& options) {
  bool along = true;
  for (const std::size_t i : {1U, 2U}) along &= filters[i + 2] == 1 && options.strides[i] == 1 && options.padding[i] == Padding{0, 0};
  return along;
}

/// Conv of x (N, C, D, H, W) as one of images: of (D, H W) if windows are along the depth; else the elements that a window has along the
/// depth become channels, and its positions part of the batch.
Value convolve_3d(Value x, Value w, Value b, const ConvOptions& options) {
  const Shape in = x.shape(), filters = w.shape();
  const std::int64_t taps = filters[2];
  const Padding padding = options.padding[0];
  if (is_along_depth(filters, options)) {
    ConvOptions along;
    static_cast<WindowOptions&>(along) = depth_of(options);
    along.groups = options.groups;
    const Value images = ops::reshape(x, Shape{in[0], in[1], in[2], product({in[3], in[4]})});
    const Value y = ops::conv(images, ops::reshape(w, Shape{filters[0], filters[1], taps, 1}), b, along);
    return ops::reshape(y, Shape{in[0], filters[0], y.shape()[2], in[3], in[4]});
  }
  Value columns = x;
  std::int64_t depth = in[2];
  if (taps != 1 || options.strides[0] != 1 || padding != Padding{0, 0}) {
    columns = ops::im2col(ops::reshape(x, Shape{in[0], in[1], in[2], product({in[3], in[4]})}), {taps, 1}, depth_of(options));
    depth = (padding.first + in[2] + padding.second - window_extent(taps, options, 0)) / options.strides[0] + 1;
  }
  columns = ops::transpose(ops::reshape(columns, Shape{in[0], product({in[1], taps}), depth, in[3], in[4]}), {0, 2, 1, 3, 4});
  const Value images = ops::reshape(columns, Shape{product({in[0], depth}), product({in[1], taps}), in[3], in[4]});
  const Value planes = ops::reshape(w, Shape{filters[0], product({filters[1], taps}), filters[3], filters[4]});
  const Value y = ops::conv(images, planes, b, plane_of(options));
  const Shape out = y.shape();
  return ops::transpose(ops::reshape(y, Shape{in[0], depth, out[1], out[2], out[3]}), {0, 2, 1, 3, 4});
}

/// y with b (O) added to its channels.
Value with_bias(const Node& node, Value y, Value b) {
  if (!b.present()) return y;
  Shape per_channel{y.shape()[1]};
  if (b.shape() != per_channel)
    node.fail(fmt::format("expected b of {} for y {}, got {}", per_channel.str(), y.shape().str(), b.shape().str()));
  for (std::size_t i = 2; i < y.shape().rank(); ++i) per_channel.push_back(1);
  return ops::add(y, ops::reshape(b, per_channel));
}

/// The transpose of convolve_3d, without a bias: images of each depth first, which are then added along the depth. `depth` is the size of
/// the result.
Value convolve_transposed_3d(Value x, Value w, const ConvOptions& options, const Sizes& output_padding, std::int64_t depth) {
  const Shape in = x.shape(), filters = w.shape();
  const std::int64_t taps = filters[2];
  const Value images = ops::reshape(ops::transpose(x, {0, 2, 1, 3, 4}), Shape{product({in[0], in[2]}), in[1], in[3], in[4]});
  const Value planes = ops::reshape(w, Shape{filters[0], product({filters[1], taps}), filters[3], filters[4]});
  const Value y = ops::conv_transpose(images, planes, {}, plane_of(options), {output_padding[1], output_padding[2]});
  const Shape out = y.shape();
  const std::int64_t pixels = product({out[2], out[3]});
  const Value by_channel = ops::transpose(ops::reshape(y, Shape{in[0], in[2], out[1], out[2], out[3]}), {0, 2, 1, 3, 4});
  const Value columns = ops::reshape(by_channel, Shape{in[0], out[1], product({in[2], pixels})});
  const Value sums = ops::col2im(columns, {depth, pixels}, {taps, 1}, depth_of(options));
  return ops::reshape(sums, Shape{in[0], out[1] / taps, depth, out[2], out[3]});
}

/// One spatial dimension of a transposed convolution: its result without padding has `spread` elements, of which `before` and `after` are
/// removed from the ends; negative ones add zeros.
struct TransposedAxis {
  std::int64_t spread, before, after;

  std::int64_t size() const { return spread - before - after; }
};

/// The spatial dimensions of a ConvTranspose with the strides, dilations and padding of `options`.
std::vector<TransposedAxis> transposed_axes(const Node& node, const Shape& x, const Sizes& kernel, const WindowOptions& options) {
  const std::size_t dims = kernel.size();
  const Sizes extra = checked_list(node, "output_padding", dims, 0, 0);
  Sizes sizes = node.integers("output_shape");
  if (sizes.size() == dims + 2) sizes.erase(sizes.begin(), sizes.begin() + 2);  // ONNX Runtime takes batch and channels as well
  if (!sizes.empty() && sizes.size() != dims) {
    node.fail(fmt::format("expected an output_shape of {} elements, got {}", dims, sizes.size()));
  }
  const std::string_view auto_pad = node.text("auto_pad", "NOTSET");
  const bool upper = auto_pad == "SAME_UPPER", same = upper || auto_pad == "SAME_LOWER";
  std::vector<TransposedAxis> axes;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t in = x[i + 2], stride = options.strides[i];
    if (in < 1 || in > max_window)
      node.fail(fmt::format("expected an image of 1 to {} elements in each dimension, got {}", max_window, x.str()));
    const std::int64_t spread = (in - 1) * stride + window_extent(kernel[i], options, i);
    TransposedAxis axis{spread, options.padding[i].first, options.padding[i].second - extra[i]};
    if (!sizes.empty() && (sizes[i] < 1 || sizes[i] > max_window)) {
      node.fail(fmt::format("expected an output_shape of 1 to {} in each dimension, got {}", max_window, sizes[i]));
    }
    if (same || !sizes.empty()) {
      const std::int64_t size = sizes.empty() ? in * stride : sizes[i];
      // as in ONNX Runtime, a result that is larger than all windows grows at its end
      const std::int64_t total = std::max<std::int64_t>(spread + extra[i] - size, 0);
      axis.before = upper ? total / 2 : total - total / 2;
      axis.after = spread - axis.before - size;
    }
    if (axis.size() < 1) {
      node.fail(fmt::format("spatial dimension {} of the result would have {} elements: {} less padding {} and {}", i, axis.size(), spread,
                            axis.before, axis.after));
    }
    axes.push_back(axis);
  }
  return axes;
}

}  // namespace

std::int64_t window_extent(std::int64_t kernel, const WindowOptions& options, std::size_t i) {
  return options.dilations[i] * (kernel - 1) + 1;
}

WindowOptions window_options(Node& node, const Shape& x, const Sizes& kernel) {
  const std::size_t dims = kernel.size();
  if (dims == 0 || x.rank() != dims + 2) {
    node.fail(fmt::format("expected x (N, C, d...) and a kernel with a size for each d, got x {} and {} sizes", x.str(), dims));
  }
  if (dims > 3) node.unsupported(fmt::format("expected windows over one to three spatial dimensions, got {} in x {}", dims, x.str()));
  for (const std::int64_t size : kernel) {
    if (size < 1 || size > max_window) node.fail(fmt::format("expected a kernel of 1 to {} in each dimension, got {}", max_window, size));
  }
  WindowOptions options;
  options.strides = checked_list(node, "strides", dims, 1, 1);
  options.dilations = checked_list(node, "dilations", dims, 1, 1);
  options.ceil_mode = node.flag("ceil_mode");
  options.padding.assign(dims, {0, 0});
  const std::string_view auto_pad = node.text("auto_pad", "NOTSET");
  if (auto_pad == "NOTSET" || auto_pad.empty()) {
    const Sizes pads = checked_list(node, "pads", 2 * dims, 0, -max_window);
    for (std::size_t i = 0; i < dims; ++i) options.padding[i] = {pads[i], pads[dims + i]};
  } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    for (std::size_t i = 0; i < dims; ++i) {
      options.padding[i] = same_padding(x[i + 2], window_extent(kernel[i], options, i), options.strides[i], auto_pad == "SAME_UPPER");
    }
  } else if (auto_pad != "VALID") {
    node.fail(fmt::format("expected auto_pad of NOTSET, SAME_UPPER, SAME_LOWER or VALID, got \"{}\"", auto_pad));
  }
  return options;
}

Value without_negative_padding(Node& node, Value x, WindowOptions& options) {
  for (std::size_t i = 0; i < options.padding.size(); ++i) {
    Padding& padding = options.padding[i];
    const std::int64_t size = x.shape()[i + 2];
    const std::int64_t begin = std::max<std::int64_t>(-padding.first, 0), end = size - std::max<std::int64_t>(-padding.second, 0);
    if (begin > end) {
      node.fail(fmt::format("expected padding that keeps elements of spatial dimension {} of {}, got {} and {}", i, x.shape().str(),
                            padding.first, padding.second));
    }
    if (end - begin < size) x = ops::slice(x, static_cast<std::int64_t>(i) + 2, begin, end);
    padding = {std::max<std::int64_t>(padding.first, 0), std::max<std::int64_t>(padding.second, 0)};
  }
  return x;
}

namespace {

/// The attributes of a convolution.
ConvOptions conv_options(Node& node, const Shape& x, const Shape& w) {
  ConvOptions options;
  static_cast<WindowOptions&>(options) = window_options(node, x, kernel_of(node, x, w));
  options.ceil_mode = false;
  options.groups = node.integer("group", 1);
  return options;
}

}  // namespace

Value convolve(Node& node, Value x, Value w, Value b) {
  ConvOptions options = conv_options(node, x.shape(), w.shape());
  x = without_negative_padding(node, x, options);
  return options.padding.size() == 3 ? convolve_3d(x, w, b, options) : ops::conv(x, w, b, options);
}

Value convolve_integers(Node& node, Value x, Value w, Value x_zero_point, Value w_zero_point) {
  ConvOptions options = conv_options(node, x.shape(), w.shape());
  if (options.padding.size() == 3) return {};
  return ops::conv_integer(without_negative_padding(node, x, options), w, x_zero_point, w_zero_point, options);
}

Value convolve_requantized(Node& node, const ops::Quantized& x, const ops::Quantized& w, Value y_scale, Value y_zero_point, Value bias) {
  ConvOptions options = conv_options(node, x.q.shape(), w.q.shape());
  if (options.padding.size() == 3) return {};
  const ops::Quantized image{without_negative_padding(node, x.q, options), x.scale, x.zero_point};
  return ops::qlinear_conv(image, w, y_scale, y_zero_point, bias, options);
}

Value convolve_transposed(Node& node, Value x, Value w, Value b) {
  const Sizes kernel = kernel_of(node, x.shape(), w.shape());
  ConvOptions options;
  static_cast<WindowOptions&>(options) = window_options(node, x.shape(), kernel);
  options.ceil_mode = false;
  options.groups = node.integer("group", 1);
  const std::vector<TransposedAxis> axes = transposed_axes(node, x.shape(), kernel, options);
  // The op adds up to a stride less one element at the end. What is missing beyond, and at the beginning, are zeros.
  std::vector<Padding> zeros(kernel.size() + 2, {0, 0});
  Sizes output_padding(kernel.size(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t before = axes[i].before, after = axes[i].after;
    options.padding[i] = {std::max<std::int64_t>(before, 0), std::max<std::int64_t>(after, 0)};
    output_padding[i] = std::clamp<std::int64_t>(-after, 0, options.strides[i] - 1);
    zeros[i + 2] = {std::max<std::int64_t>(-before, 0), std::max<std::int64_t>(-after, 0) - output_padding[i]};
  }
  const bool grows = std::any_of(zeros.begin(), zeros.end(), [](const Padding& p) { return p != Padding{0, 0}; });
  if (kernel.size() < 3 && !grows) return ops::conv_transpose(x, w, b, options, output_padding);
  // the depth without the zeros that are added around it
  const std::int64_t depth = axes[0].size() - zeros[2].first - zeros[2].second;
  Value y = kernel.size() == 3 ? convolve_transposed_3d(x, w, options, output_padding, depth)
                               : ops::conv_transpose(x, w, {}, options, output_padding);
  if (grows) y = ops::pad(y, zeros);
  return with_bias(node, y, b);
}

}  // namespace tenon::onnx
