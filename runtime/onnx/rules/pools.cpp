// SPDX-License-Identifier: Apache-2.0
// onnx/rules/pools.cpp - pools of one to three spatial dimensions. A pool over three is one over the last two and then one over the first.
#include "onnx/rules/pools.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "onnx/rules/dtypes.h"
#include "onnx/rules/windows.h"

namespace tenon::onnx {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Windows over x, with padding of 0 or more.
struct Windows {
  Value x;
  Sizes kernel;
  WindowOptions options;
};

Windows windows_of(Node& node, Value x) {
  Windows windows{x, node.integers("kernel_shape"), {}};
  if (windows.kernel.empty()) node.fail("expected an attribute kernel_shape, got none");
  windows.options = window_options(node, x.shape(), windows.kernel);
  windows.x = without_negative_padding(node, x, windows.options);
  return windows;
}

/// True if the pools of Tenon take the padding: less than the extent of the kernel, and no window of padding only.
bool fits_pool(const Windows& windows) {
  const Shape shape = windows.x.shape();
  for (std::size_t i = 0; i < windows.kernel.size(); ++i) {
    const std::int64_t extent = window_extent(windows.kernel[i], windows.options, i);
    const std::int64_t before = windows.options.padding[i].first, after = windows.options.padding[i].second;
    if (before >= extent || after >= extent) return false;
    if (before + after > 0 && windows.options.dilations[i] > shape[i + 2]) return false;
  }
  return true;
}

bool is_dilated(const WindowOptions& options) {
  return std::any_of(options.dilations.begin(), options.dilations.end(), [](std::int64_t d) { return d != 1; });
}

/// The number of elements after an image of `size` elements that the windows of dimension i read, at least 0, or, without ceil_mode, the
/// padding that is there.
std::int64_t elements_after(const Windows& windows, std::int64_t size, std::size_t i) {
  const WindowOptions& options = windows.options;
  const std::int64_t before = options.padding[i].first, after = options.padding[i].second, stride = options.strides[i];
  const std::int64_t extent = window_extent(windows.kernel[i], options, i);
  const std::int64_t rest = before + size + after - extent;
  if (!options.ceil_mode || rest <= -stride) return after;
  std::int64_t last = (rest > 0 ? (rest + stride - 1) / stride : 0) * stride;
  if (last > 0 && last >= size + before) last -= stride;  // a window that would start in the padding after the image does not count
  return std::max<std::int64_t>(last + extent - size - before, 0);
}

/// The same windows without padding and without ceil_mode: x has what they read outside of it as elements of `value`.
Windows explicitly_padded(const Windows& windows, double value) {
  const Shape shape = windows.x.shape();
  Windows padded = windows;
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(shape.rank(), {0, 0});
  for (std::size_t i = 0; i < windows.kernel.size(); ++i) {
    widths[i + 2] = {windows.options.padding[i].first, elements_after(windows, shape[i + 2], i)};
    padded.options.padding[i] = {0, 0};
  }
  padded.options.ceil_mode = false;
  padded.x = ops::pad(windows.x, widths, value);
  return padded;
}

/// The sums of windows that no pool of Tenon takes: a convolution of each channel with ones. Padding counts as zeros.
Value sums_by_convolution(const Windows& windows) {
  const Windows padded = explicitly_padded(windows, 0);
  const Shape shape = padded.x.shape();
  Shape images{Shape{shape[0], shape[1]}.count(), 1}, filters{1, 1};
  for (std::size_t i = 0; i < padded.kernel.size(); ++i) {
    images.push_back(shape[i + 2]);
    filters.push_back(padded.kernel[i]);
  }
  Graph& graph = windows.x.graph();
  const Value ones = ops::expand(graph.constant(Tensor::full(windows.x.dtype(), {}, 1)), filters);
  ConvOptions options;
  static_cast<WindowOptions&>(options) = padded.options;
  const Value y = ops::conv(ops::reshape(padded.x, images), ones, {}, options);
  Shape result = y.shape();
  result.set(0, shape[0]);
  result.set(1, shape[1]);
  return ops::reshape(y, result);
}

/// The means of windows that no pool of Tenon takes: their sums by the sums of an image of ones.
Value means_by_convolution(const Windows& windows, bool count_include_pad) {
  const Shape shape = windows.x.shape();
  Windows ones = windows;
  Shape counted{1, 1};
  for (std::size_t i = 0; i < windows.kernel.size(); ++i) {
    auto& [before, after] = ones.options.padding[i];
    std::int64_t size = shape[i + 2];
    const std::int64_t read = elements_after(windows, size, i);
    if (count_include_pad) {
      // What ceil_mode reads after the padding counts in no case.
      const std::int64_t inside = std::min(after, read);
      size += before + inside;
      before = 0;
      after = read - inside;
    } else {
      after = read;
    }
    counted.push_back(size);
  }
  ones.options.ceil_mode = false;
  ones.x = ops::expand(windows.x.graph().constant(Tensor::full(windows.x.dtype(), {}, 1)), counted);
  return ops::div(sums_by_convolution(windows), sums_by_convolution(ones));
}

Value means(const Windows& windows, bool count_include_pad) {
  if (is_dilated(windows.options) || !fits_pool(windows)) return means_by_convolution(windows, count_include_pad);
  return ops::average_pool(windows.x, windows.kernel, windows.options, count_include_pad);
}

Value sums(const Windows& windows) {
  if (is_dilated(windows.options) || !fits_pool(windows)) return sums_by_convolution(windows);
  return ops::sum_pool(windows.x, windows.kernel, windows.options);
}

Value maxima(const Windows& windows) {
  if (fits_pool(windows)) return ops::max_pool(windows.x, windows.kernel, windows.options);
  const Windows padded = explicitly_padded(windows, -std::numeric_limits<double>::infinity());
  return ops::max_pool(padded.x, padded.kernel, padded.options);
}

/// Windows over three spatial dimensions, (N, C, D, H, W), as windows over H and W of each depth, and windows over D of what these give.
struct PlanesAndDepth {
  explicit PlanesAndDepth(const Windows& windows) : volume(windows), shape(windows.x.shape()) {}

  Windows planes() const {
    Windows part{ops::reshape(volume.x, Shape{shape[0], Shape{shape[1], shape[2]}.count(), shape[3], shape[4]}),
                 {volume.kernel[1], volume.kernel[2]},
                 {}};
    part.options.strides = {volume.options.strides[1], volume.options.strides[2]};
    part.options.dilations = {volume.options.dilations[1], volume.options.dilations[2]};
    part.options.padding = {volume.options.padding[1], volume.options.padding[2]};
    part.options.ceil_mode = volume.options.ceil_mode;
    return part;
  }
  /// y: the result of planes().
  Windows depth(Value y) const {
    const Shape plane = y.shape();
    Windows part{ops::reshape(y, Shape{shape[0], shape[1], shape[2], Shape{plane[2], plane[3]}.count()}), {volume.kernel[0], 1}, {}};
    part.options.strides = {volume.options.strides[0], 1};
    part.options.dilations = {volume.options.dilations[0], 1};
    part.options.padding = {volume.options.padding[0], {0, 0}};
    part.options.ceil_mode = volume.options.ceil_mode;
    return part;
  }
  /// y: the result of depth(), or indices of its shape; `plane`: the result of planes().
  Value restored(Value y, Value plane) const {
    return ops::reshape(y, Shape{shape[0], shape[1], y.shape()[2], plane.shape()[2], plane.shape()[3]});
  }

  const Windows& volume;
  Shape shape;
};

/// A pool over windows of one to three spatial dimensions by `pool` over one or two. Maxima, sums and means of boxes can be taken over one
/// dimension after the other, also where padding does not count.
template <class Pool>
Value pooled(const Windows& windows, const Pool& pool) {
  if (windows.kernel.size() < 3) return pool(windows);
  const PlanesAndDepth parts(windows);
  const Value plane = pool(parts.planes());
  return parts.restored(pool(parts.depth(plane)), plane);
}

/// The dtype in which maxima are found: one that the pools take and that has all values of `dtype`, of i64 and u64 those below 2^53.
DType maxima_dtype(DType dtype) {
  if (is_floating(dtype)) return dtype;
  return size_of(dtype) <= 2 ? DType::f32 : DType::f64;
}

/// Positions in an image of this shape, row-major, as positions that are column-major within each channel.
Value as_column_major(Value indices, const Shape& image) {
  double channel = 1;
  for (std::size_t i = 2; i < image.rank(); ++i) channel *= static_cast<double>(image[i]);
  const Value first = ops::mul(ops::div(indices, channel), channel);  // that of the channel: division truncates
  Value rest = ops::sub(indices, first), result = first;
  double stride = channel;
  for (std::size_t i = image.rank(); i-- > 2;) {
    const auto size = static_cast<double>(image[i]);
    stride /= size;
    const Value quotient = ops::div(rest, size);
    result = ops::add(result, ops::mul(ops::sub(rest, ops::mul(quotient, size)), stride));
    rest = quotient;
  }
  return result;
}

}  // namespace

Value average_pool(Node& node, Value x) {
  const bool count_include_pad = node.flag("count_include_pad");
  return pooled(windows_of(node, x), [&](const Windows& windows) { return means(windows, count_include_pad); });
}

Value lp_pool(Node& node, Value x, double p) {
  if (!(p >= 1)) node.fail(fmt::format("expected p of 1 or more, got {}", p));
  // Powers and their sums exceed the range of 16 bits soon.
  const DType dtype = size_of(x.dtype()) == 2 ? DType::f32 : x.dtype();
  Windows windows = windows_of(node, cast_to(x, dtype));
  windows.x = p == 1 ? ops::abs(windows.x) : p == 2 ? ops::square(windows.x) : ops::pow(ops::abs(windows.x), p);
  Value y = pooled(windows, sums);
  if (p != 1) {
    // The root has no derivative at 0.
    const Value zero = node.scalar(dtype, 0), positive = ops::greater(y, zero);
    const Value base = ops::where(positive, y, node.scalar(dtype, 1));
    y = ops::where(positive, p == 2 ? ops::sqrt(base) : ops::pow(base, 1 / p), zero);
  }
  return cast_to(y, x.dtype());
}

Value max_pool(Node& node, Value x) {
  return cast_to(pooled(windows_of(node, cast_to(x, maxima_dtype(x.dtype()))), maxima), x.dtype());
}

MaxPoolResult max_pool_with_indices(Node& node, Value x, bool column_major) {
  const Windows windows = windows_of(node, cast_to(x, maxima_dtype(x.dtype())));
  if (windows.x.shape() != x.shape() || !fits_pool(windows)) {
    node.unsupported("expected padding of 0 or more and less than the kernel for a MaxPool with the result Indices, got another one");
  }
  const auto pool = [](const Windows& part) {
    const std::pair<Value, Value> result = ops::max_pool_with_indices(part.x, part.kernel, part.options);
    return MaxPoolResult{result.first, result.second};
  };
  MaxPoolResult result;
  if (windows.kernel.size() < 3) {
    result = pool(windows);
  } else {
    const PlanesAndDepth parts(windows);
    const MaxPoolResult plane = pool(parts.planes());
    const MaxPoolResult line = pool(parts.depth(plane.y));
    const Value positions = ops::reshape(plane.indices, Shape{plane.indices.shape().count()});
    result = {parts.restored(line.y, plane.y), parts.restored(ops::gather(positions, line.indices), plane.y)};
  }
  if (column_major && windows.kernel.size() > 1) result.indices = as_column_major(result.indices, x.shape());
  result.y = cast_to(result.y, x.dtype());
  return result;
}

}  // namespace tenon::onnx
