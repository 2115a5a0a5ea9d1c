// SPDX-License-Identifier: Apache-2.0
// ops/window.h - sliding windows over the spatial dimensions of an image (N, C, d...), for convolution, pooling and
// im2col.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon::graph {

/// Images have one or two spatial dimensions; the attribute structs have space for one more.
inline constexpr std::size_t max_spatial = 2;
static_assert(max_spatial <= TENON_MAX_SPATIAL);

/// The largest kernel, stride, dilation or padding: the sum of an extent and a padded size fits 64 bits.
inline constexpr std::int64_t max_window = 0x7fffffff;

/// One spatial dimension of an image and its windows.
struct WindowAxis {
  std::int64_t size, kernel, stride, dilation, before, after;

  std::int64_t extent() const { return dilation * (kernel - 1) + 1; }  ///< size of one window including holes
  std::int64_t padded() const { return before + size + after; }
  /// Number of windows: floor((padded - extent) / stride) + 1, at most 0 if the kernel does not fit. `ceil_mode` rounds up, but a window
  /// that would start in the padding after the image does not count: as in PyTorch and ONNX, a kernel that is less than a stride too large
  /// has one window.
  std::int64_t windows(bool ceil_mode = false) const {
    const std::int64_t family = padded() - extent();
    if (!ceil_mode) return family < 0 ? 0 : family / stride + 1;
    const std::int64_t count = (family > 0 ? (family + stride - 1) / stride : family / stride) + 1;
    return (count - 1) * stride >= size + before ? count - 1 : count;
  }
  /// "size 4, kernel 5, stride 1, dilation 1, padding 0 and 0"
  std::string str() const {
    return fmt::format("size {}, kernel {}, stride {}, dilation {}, padding {} and {}", size, kernel, stride, dilation, before, after);
  }
};

/// Spatial dimension i of an image (N, C, d...) of this shape, `kernel` elements wide.
template <class Struct>
WindowAxis window_axis(const Shape& image, std::int64_t kernel, const Struct& attributes, std::size_t i) {
  return {image[i + 2], kernel, attributes.strides[i], attributes.dilations[i], attributes.pads_before[i], attributes.pads_after[i]};
}

/// The number of spatial dimensions of operand i. Errors: not one or two.
inline std::size_t expect_image(const Inference& at, std::size_t i) {
  const std::size_t rank = at.shape(i).rank();
  if (rank < 3 || rank > 2 + max_spatial) at.fail(fmt::format("expected an image (N, C, L) or (N, C, H, W), got {}", at.str(i)));
  return rank - 2;
}

/// Checks strides, dilations and padding of `dims` spatial dimensions and sets the unused entries to 1, 1 and 0.
template <class Struct>
void normalise_spatial(const Inference& at, Struct& attributes, std::size_t dims) {
  const auto check = [&](std::int64_t(&entries)[TENON_MAX_SPATIAL], const char* what, std::int64_t lowest) {
    for (std::size_t i = 0; i < dims; ++i) {
      if (entries[i] < lowest || entries[i] > max_window) {
        at.fail(fmt::format("expected a {} of {} to {}, got {} for spatial dimension {}", what, lowest, max_window, entries[i], i));
      }
    }
    for (std::size_t i = dims; i < TENON_MAX_SPATIAL; ++i) entries[i] = lowest;
  };
  check(attributes.strides, "stride", 1);
  check(attributes.dilations, "dilation", 1);
  check(attributes.pads_before, "padding", 0);
  check(attributes.pads_after, "padding", 0);
  if constexpr (std::is_same_v<Struct, tenon_attributes_window>) check(attributes.kernel, "kernel", 1);
}

/// The number of windows along spatial dimension i. Errors: a kernel larger than the padded image; the text has all values.
inline std::int64_t expect_windows(const Inference& at, const WindowAxis& axis, std::size_t i, bool ceil_mode = false) {
  if (axis.windows(ceil_mode) < 1) {
    at.fail(fmt::format("the kernel's extent {} exceeds the padded size {}{} in spatial dimension {}: {}", axis.extent(), axis.padded(),
                        ceil_mode ? " by a stride or more" : "", i, axis.str()));
  }
  return axis.windows(ceil_mode);
}

/// NodeOptions::shape, for an image shape that no operand determines.
inline const Shape& expect_given_shape(const Inference& at) {
  if (!at.options.shape) at.fail("the result's shape is not given (NodeOptions::shape)");
  return *at.options.shape;
}

/// Checks that the number of windows of `axis` equals `count`, the size of spatial dimension i of the operand `operand`.
inline void expect_window_count(const Inference& at, const WindowAxis& axis, std::size_t i, std::int64_t count, const std::string& operand,
                                bool ceil_mode = false) {
  const std::int64_t windows = std::max<std::int64_t>(axis.windows(ceil_mode), 0);
  if (windows != count) {
    at.fail(fmt::format("the given shape has {} windows in spatial dimension {} ({}), expected the {} of {}", windows, i, axis.str(), count,
                        operand));
  }
}

/// The image and the filters of a convolution in messages: "x f32(2,3,8,8)" of an operand, "the given shape (2,3,8,8)" of a result.
struct ConvolutionNames {
  std::string x, w;
};

/// Checks that ranks, groups, channels and attributes of x and w match; either may be the result.
inline void check_convolution(const Inference& at, tenon_attributes_conv& attributes, const Shape& x, const Shape& w,
                              const ConvolutionNames& names) {
  const std::size_t rank = x.rank();
  if (rank < 3 || rank > 2 + max_spatial) at.fail(fmt::format("expected an image (N, C, L) or (N, C, H, W), got {}", names.x));
  if (w.rank() != rank) at.fail(fmt::format("expected a kernel of {} dimensions for {}, got {}", rank, names.x, names.w));
  for (std::size_t i = 1; i < rank; ++i) {
    if (x[i] == 0) at.fail(fmt::format("expected an image with channels and elements, got {}", names.x));
  }
  if (w.count() == 0) at.fail(fmt::format("expected a kernel with elements, got {}", names.w));
  for (std::size_t i = 2; i < rank; ++i) {
    if (w[i] > max_window) at.fail(fmt::format("expected a kernel of at most {} in each dimension, got {}", max_window, names.w));
  }
  const std::int64_t groups = attributes.groups;
  if (groups < 1) at.fail(fmt::format("expected 1 or more groups, got {}", groups));
  if (x[1] % groups != 0) at.fail(fmt::format("{} groups do not divide the {} channels of {}", groups, x[1], names.x));
  if (w[0] % groups != 0) at.fail(fmt::format("{} groups do not divide the {} filters of {}", groups, w[0], names.w));
  if (w[1] != x[1] / groups) {
    at.fail(fmt::format("expected filters over {} channels, {} of {} in {} group{}, got {}", x[1] / groups, x[1], names.x, groups,
                        groups == 1 ? "" : "s", names.w));
  }
  normalise_spatial(at, attributes, rank - 2);
}

/// The shape of y for x and w, which have been checked.
inline Shape convolution_shape(const Inference& at, const tenon_attributes_conv& attributes, const Shape& x, const Shape& w) {
  Shape y{x[0], w[0]};
  for (std::size_t i = 0; i + 2 < x.rank(); ++i) y.push_back(expect_windows(at, window_axis(x, w[i + 2], attributes, i), i));
  return y;
}

/// Flops of a convolution or its gradients: each element of the image with one channel per filter is multiplied by a filter.
inline std::int64_t convolution_flops(const Graph& graph, ValueId image, ValueId filters) {
  const Shape& w = graph.info(filters).shape;
  return 2 * graph.info(image).shape.count() * (w.count() / w[0]);
}

}  // namespace tenon::graph

namespace tenon::ops {

/// (N, d..., C) as (N, C, d...) and back.
inline Value to_channels_first(Value x) {
  const std::size_t rank = x.shape().rank();
  if (rank < 3) return x;
  std::vector<std::int64_t> order{0, static_cast<std::int64_t>(rank) - 1};
  for (std::size_t i = 1; i + 1 < rank; ++i) order.push_back(static_cast<std::int64_t>(i));
  return transpose(x, order);
}
inline Value to_channels_last(Value x) {
  const std::size_t rank = x.shape().rank();
  if (rank < 3) return x;
  std::vector<std::int64_t> order{0};
  for (std::size_t i = 2; i < rank; ++i) order.push_back(static_cast<std::int64_t>(i));
  order.push_back(1);
  return transpose(x, order);
}

/// Strides, dilations and padding as attributes, for an image (N, C, d...) of shape `x` and windows of `kernel`. Strides default to 1, or
/// to the kernel's sizes with `stride_is_kernel`. Values are checked by the shape rule.
/// Errors  lists whose length differs from the
///         kernel's; padding together with `same`. `what` names the function.
template <class Struct>
void set_spatial(Struct& attributes, const char* what, const Shape& x, std::span<const std::int64_t> kernel, const WindowOptions& options,
                 bool stride_is_kernel = false) {
  const std::size_t dims = kernel.size();
  const auto length = [&](std::size_t count, const char* list) {
    if (count != 0 && count != dims) {
      throw Error(fmt::format("{} of x {}: expected {} {}, one per dimension of the kernel, got {}", what, x.str(), dims, list, count));
    }
  };
  length(options.strides.size(), "strides");
  length(options.dilations.size(), "dilations");
  length(options.padding.size(), "pairs of padding");
  if (options.same && !options.padding.empty()) throw Error(fmt::format("{} of x {}: `same` and `padding` are both given", what, x.str()));
  for (std::size_t i = 0; i < TENON_MAX_SPATIAL; ++i) {
    const bool used = i < dims;
    attributes.strides[i] = !used ? 1 : !options.strides.empty() ? options.strides[i] : stride_is_kernel ? kernel[i] : 1;
    attributes.dilations[i] = used && !options.dilations.empty() ? options.dilations[i] : 1;
    attributes.pads_before[i] = used && !options.padding.empty() ? options.padding[i].first : 0;
    attributes.pads_after[i] = used && !options.padding.empty() ? options.padding[i].second : 0;
    // skip values that the shape rule will reject
    const auto is_valid = [](std::int64_t value) { return value >= 1 && value <= graph::max_window; };
    if (used && options.same && x.rank() == dims + 2 && is_valid(kernel[i]) && is_valid(attributes.strides[i]) &&
        is_valid(attributes.dilations[i])) {
      const graph::WindowAxis axis = graph::window_axis(x, kernel[i], attributes, i);
      const std::int64_t windows = (axis.size + axis.stride - 1) / axis.stride;
      const std::int64_t total = std::max<std::int64_t>((windows - 1) * axis.stride + axis.extent() - axis.size, 0);
      attributes.pads_before[i] = total / 2;
      attributes.pads_after[i] = total - total / 2;
    }
    if constexpr (std::is_same_v<Struct, tenon_attributes_window>) attributes.kernel[i] = used ? kernel[i] : 1;
  }
}

/// The attributes of a convolution of an image of shape `x`. Errors: those of set_spatial; fewer than 1 group; ceil_mode.
inline tenon_attributes_conv conv_attributes(const char* what, const Shape& x, std::span<const std::int64_t> kernel,
                                             const ConvOptions& options) {
  if (options.groups < 1 || options.groups > graph::max_window) {
    throw Error(fmt::format("{} of x {}: expected 1 or more groups, got {}", what, x.str(), options.groups));
  }
  if (options.ceil_mode) throw Error(fmt::format("{} of x {}: ceil_mode is for pools", what, x.str()));
  tenon_attributes_conv attributes{};
  attributes.groups = static_cast<std::uint32_t>(options.groups);
  set_spatial(attributes, what, x, kernel, options);
  return attributes;
}

}  // namespace tenon::ops
