// SPDX-License-Identifier: Apache-2.0
// ops/pool.cpp - maximum and mean of sliding windows.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/op.h"
#include "ops/window.h"

namespace tenon {
namespace graph {
namespace {

constexpr std::size_t indices_output = 1;

/// Checks that padding is less than the kernel's extent and each window covers an element of the image; else maximum and mean are
/// undefined.
void check_padding(const Inference& at, const WindowAxis& axis, std::size_t i) {
  if (axis.before >= axis.extent() || axis.after >= axis.extent()) {
    at.fail(fmt::format("expected padding of less than the {} elements that the kernel covers in spatial dimension {}: {}", axis.extent(),
                        i, axis.str()));
  }
  if (axis.size > 0 && axis.dilation <= axis.size) return;
  // a dilated window that starts in the padding may skip the whole image: the offset of its first tap after the padding
  for (std::int64_t start = -axis.before; start < 0; start += axis.stride) {
    if ((start % axis.dilation + axis.dilation) % axis.dilation < axis.size) continue;
    at.fail(fmt::format("a window covers only padding in spatial dimension {}: {}", i, axis.str()));
  }
}

/// Checks and normalises the window over `image`.
tenon_attributes_window checked_window(Inference& at, const Shape& image, bool average) {
  auto attributes = at.attributes.as<tenon_attributes_window>();
  const std::size_t dims = image.rank() - 2;
  normalise_spatial(at, attributes, dims);
  at.expect_flag(attributes.ceil_mode, "ceil_mode");
  at.expect_flag(attributes.count_include_pad, "count_include_pad");
  if (!average) attributes.count_include_pad = 0;
  for (std::size_t i = 0; i < dims; ++i) {
    if (average && attributes.dilations[i] != 1) {
      at.fail(fmt::format("expected a dilation of 1, got {} for spatial dimension {}", attributes.dilations[i], i));
    }
    const WindowAxis axis = window_axis(image, attributes.kernel[i], attributes, i);
    expect_windows(at, axis, i, attributes.ceil_mode != 0);
    check_padding(at, axis, i);
  }
  return attributes;
}

template <bool average>
void infer(Inference& at) {
  at.expect_inputs(1, 1);
  const bool is_byte = at.dtype(0) == DType::i8 || at.dtype(0) == DType::u8;
  if (average || !is_byte) at.expect_floating(0);
  const std::size_t dims = expect_image(at, 0);
  const auto attributes = checked_window(at, at.shape(0), average);
  at.attributes = Attributes::of(attributes);
  Shape y = at.shape(0);
  for (std::size_t i = 0; i < dims; ++i) {
    y.set(i + 2, window_axis(at.shape(0), attributes.kernel[i], attributes, i).windows(attributes.ceil_mode != 0));
  }
  at.output(at.dtype(0), y);
  if (!average) at.output(DType::i64, y);
}

/// Checks the shape of x for the gradient dy of its pool.
const Shape& expect_image_of(Inference& at) {
  at.expect_floating(0);
  expect_image(at, 0);
  const Shape& x = expect_given_shape(at);
  const Shape& dy = at.shape(0);
  if (x.rank() != dy.rank() || x[0] != dy[0] || x[1] != dy[1]) {
    at.fail(fmt::format("expected a result with the rank, batch size and channels of {}, got {}", at.str(0), x.str()));
  }
  return x;
}

void infer_max_gradient(Inference& at) {
  at.expect_inputs(2, 2);
  const Shape& x = expect_image_of(at);
  if (at.dtype(1) != DType::i64) at.fail(fmt::format("expected indices of i64, got {}", at.str(1)));
  at.expect_same_shape(0, 1);
  at.output(at.dtype(0), x);
}

void infer_average_gradient(Inference& at) {
  at.expect_inputs(1, 1);
  const Shape& x = expect_image_of(at);
  auto attributes = checked_window(at, x, true);
  for (std::size_t i = 0; i + 2 < x.rank(); ++i) {
    const WindowAxis axis = window_axis(x, attributes.kernel[i], attributes, i);
    // the shape of dy tells if there is a last, partial window
    expect_window_count(at, axis, i, at.shape(0)[i + 2], at.str(0), axis.windows() != at.shape(0)[i + 2]);
  }
  attributes.ceil_mode = 0;
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), x);
}

void max_gradient(Gradient& at) {
  const Shape x = at.input(0).shape();
  at.set(0, apply_op(TENON_OP_MaxPoolGrad, {at.dy(), at.output(indices_output)}, {}, {.name = {}, .shape = x}));
}

void average_gradient(Gradient& at) {
  const Shape x = at.input(0).shape();
  at.set(0, apply_op(TENON_OP_AveragePoolGrad, {at.dy()}, at.attributes, {.name = {}, .shape = x}));
}

/// An operation for each element of each window. The first of these values has an element per window.
template <std::vector<ValueId> NodeInfo::*values>
std::int64_t flops(const Graph& graph, const NodeInfo& node) {
  const Shape& windows = graph.info((node.*values)[0]).shape;
  std::int64_t count = windows.count();
  for (std::size_t i = 0; i + 2 < windows.rank(); ++i) count *= node.attributes.as<tenon_attributes_window>().kernel[i];
  return count;
}

}  // namespace

extern const OpRules rules_max_pool, rules_max_pool_grad, rules_average_pool, rules_average_pool_grad;
const OpRules rules_max_pool{
    "y = the largest x of each window, ignoring padding; NaN wins. indices are positions in x in the order (N, C, d...), "
    "the first in case of a tie.",
    infer<false>,
    PrecisionClass::inherits,
    flops<&NodeInfo::outputs>,
    max_gradient,
    1u << indices_output};
const OpRules rules_max_pool_grad{"dx = 0, then dx[indices] += dy: each result's gradient goes to the position of its maximum.",
                                  infer_max_gradient, PrecisionClass::inherits, per_element<1>};
const OpRules rules_average_pool{
    "y = sum of x over each window, divided by the number of its elements within the padded image, or only within x.", infer<true>,
    PrecisionClass::inherits, flops<&NodeInfo::outputs>, average_gradient};
const OpRules rules_average_pool_grad{"dx = sum of dy over the windows that cover it, divided as in the forward op.",
                                      infer_average_gradient, PrecisionClass::inherits, flops<&NodeInfo::inputs>};

}  // namespace graph

namespace ops {
namespace {

Attributes window_attributes(const char* what, Value x, const std::vector<std::int64_t>& kernel, const WindowOptions& options,
                             bool count_include_pad) {
  const Shape shape = x.shape();
  // the shape rule reports ranks that are not images
  if (const std::size_t dims = kernel.size(); shape.rank() > 2 && shape.rank() <= 2 + graph::max_spatial && dims + 2 != shape.rank()) {
    throw Error(fmt::format("{}: expected a kernel of {} dimensions for x {}, got {}", what, shape.rank() - 2, shape.str(), dims));
  }
  tenon_attributes_window attributes{};
  set_spatial(attributes, what, shape, kernel, options, true);
  attributes.ceil_mode = options.ceil_mode ? 1 : 0;
  attributes.count_include_pad = count_include_pad ? 1 : 0;
  return Attributes::of(attributes);
}

/// The spatial dimensions of x (N, C, d...).
std::vector<std::int64_t> spatial_axes(const char* what, Value x) {
  const std::size_t rank = x.shape().rank();
  if (rank < 3) throw Error(fmt::format("{}: expected an image (N, C, d...), got '{}' {}", what, x.name(), x.shape().str()));
  std::vector<std::int64_t> axes;
  for (std::size_t i = 2; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

/// Window i of an axis of d elements is floor(i d / s) ... ceil((i + 1) d / s) - 1. The elements of the windows along `axis`, in a new axis
/// behind it; those of a window that is shorter than others end with copies of its last element.
struct AdaptiveWindows {
  Value elements;
  std::int64_t longest = 0;
  std::vector<std::int64_t> lengths;

  AdaptiveWindows(Value x, std::size_t axis, std::int64_t s) {
    const std::int64_t d = x.shape()[axis];
    const auto begin = [&](std::int64_t i) { return i * d / s; };
    const auto end = [&](std::int64_t i) { return ((i + 1) * d + s - 1) / s; };
    for (std::int64_t i = 0; i < s; ++i) lengths.push_back(end(i) - begin(i));
    longest = *std::max_element(lengths.begin(), lengths.end());
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < s; ++i) {
      for (std::int64_t k = 0; k < longest; ++k) places.push_back(std::min(begin(i) + k, end(i) - 1));
    }
    elements = gather(x, x.graph().constant(Tensor::of(places, {s, longest})), static_cast<std::int64_t>(axis));
  }
  bool same_lengths() const { return std::count(lengths.begin(), lengths.end(), longest) == std::ssize(lengths); }
};

Value adaptive_max(Value x, std::size_t axis, std::int64_t s) {
  return reduce_max(AdaptiveWindows(x, axis, s).elements, {static_cast<std::int64_t>(axis) + 1});
}

/// The copies at the end of a window are replaced by 0, not multiplied by it: an infinite element has no part in other windows.
Value adaptive_mean(Value x, std::size_t axis, std::int64_t s) {
  const AdaptiveWindows windows(x, axis, s);
  const std::vector<std::int64_t> across{static_cast<std::int64_t>(axis) + 1};
  if (windows.same_lengths()) return reduce_mean(windows.elements, across);
  Graph& graph = x.graph();
  Shape line{s}, table{s, windows.longest};  // broadcast along the axes behind the windows
  for (std::size_t i = axis + 1; i < x.shape().rank(); ++i) line.push_back(1), table.push_back(1);
  Tensor counts = Tensor::empty(DType::boolean, table), lengths = Tensor::empty(DType::f64, line);
  for (std::int64_t i = 0; i < s; ++i) {
    const std::int64_t length = windows.lengths[static_cast<std::size_t>(i)];
    lengths.data<double>()[i] = static_cast<double>(length);
    for (std::int64_t k = 0; k < windows.longest; ++k) counts.data<bool>()[i * windows.longest + k] = k < length;
  }
  const Value own = where(graph.constant(counts), windows.elements, graph::scalar(graph, x.dtype(), 0));
  return div(reduce_sum(own, across), cast(graph.constant(lengths), x.dtype()));
}

/// Pools the whole image by `pool` where windows do not overlap, else axis by axis.
Value adaptive_pool(const char* what, Value x, const std::vector<std::int64_t>& sizes,
                    Value (*pool)(Value, const std::vector<std::int64_t>& kernel), Value (*along)(Value, std::size_t, std::int64_t)) {
  const Shape shape = x.shape();
  const std::size_t dims = spatial_axes(what, x).size();
  if (sizes.size() != dims) {
    throw Error(fmt::format("{}: expected {} sizes, one for each spatial dimension of '{}' {}, got {}", what, dims, x.name(), shape.str(),
                            sizes.size()));
  }
  bool divides = dims <= graph::max_spatial;
  std::vector<std::int64_t> kernel;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t d = shape[i + 2], s = sizes[i];
    if (s < 1 || d < 1) {
      throw Error(
          fmt::format("{}: expected a size of 1 or more out of 1 or more elements, got {} out of {} in spatial dimension {} of "
                      "'{}' {}",
                      what, s, d, i, x.name(), shape.str()));
    }
    divides = divides && d % s == 0;
    kernel.push_back(d / s);
  }
  if (divides) return pool(x, kernel);
  for (std::size_t i = 0; i < dims; ++i) {
    if (sizes[i] != shape[i + 2]) x = along(x, i + 2, sizes[i]);
  }
  return x;
}

}  // namespace

std::pair<Value, Value> max_pool_with_indices(Value x, const std::vector<std::int64_t>& kernel, const WindowOptions& options) {
  if (options.channels_last) x = to_channels_first(x);
  const std::vector<Value> results = x.graph().apply(TENON_OP_MaxPool, {x}, window_attributes("max_pool", x, kernel, options, false), {});
  if (!options.channels_last) return {results[0], results[1]};
  return {to_channels_last(results[0]), to_channels_last(results[1])};
}

Value max_pool(Value x, const std::vector<std::int64_t>& kernel, const WindowOptions& options) {
  if (options.channels_last) x = to_channels_first(x);
  const Value y = graph::apply_op(TENON_OP_MaxPool, {x}, window_attributes("max_pool", x, kernel, options, false));
  return options.channels_last ? to_channels_last(y) : y;
}

Value average_pool(Value x, const std::vector<std::int64_t>& kernel, const WindowOptions& options, bool count_include_pad) {
  if (options.channels_last) x = to_channels_first(x);
  const Value y = graph::apply_op(TENON_OP_AveragePool, {x}, window_attributes("average_pool", x, kernel, options, count_include_pad));
  return options.channels_last ? to_channels_last(y) : y;
}

Value sum_pool(Value x, const std::vector<std::int64_t>& kernel, const WindowOptions& options) {
  if (options.channels_last) x = to_channels_first(x);
  auto window = window_attributes("sum_pool", x, kernel, options, true).as<tenon_attributes_window>();
  std::vector<std::pair<std::int64_t, std::int64_t>> missing(x.shape().rank());
  double elements = 1;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    elements *= static_cast<double>(kernel[i]);
    if (window.ceil_mode == 0 || x.shape().rank() != kernel.size() + 2) continue;
    // With the rest of a partial window as zeros all windows have equally many elements, and a mean is a sum by their number.
    const graph::WindowAxis axis = graph::window_axis(x.shape(), kernel[i], window, i);
    missing[i + 2].second = std::max<std::int64_t>((axis.windows(true) - 1) * axis.stride + axis.extent() - axis.padded(), 0);
  }
  window.ceil_mode = 0;
  if (std::any_of(missing.begin(), missing.end(), [](const auto& side) { return side.second > 0; })) x = pad(x, missing);
  const Value y = mul(graph::apply_op(TENON_OP_AveragePool, {x}, Attributes::of(window)), elements);
  return options.channels_last ? to_channels_last(y) : y;
}

Value lp_pool(Value x, const std::vector<std::int64_t>& kernel, double p, const WindowOptions& options) {
  if (!(p >= 1)) throw Error(fmt::format("lp_pool: p is {}, expected 1 or more", p));
  const Value sums = sum_pool(p == 1 ? abs(x) : p == 2 ? square(x) : pow(abs(x), p), kernel, options);
  if (p == 1) return sums;
  // The root has no derivative at 0, where a window of zeros is after a relu.
  Graph& graph = x.graph();
  const Value zero = graph::scalar(graph, x.dtype(), 0), some = greater(sums, zero);
  const Value safe = where(some, sums, graph::scalar(graph, x.dtype(), 1));
  return where(some, p == 2 ? sqrt(safe) : pow(safe, 1 / p), zero);
}

Value global_average_pool(Value x, bool keepdims) {
  return reduce_mean(x, spatial_axes("global_average_pool", x), keepdims);
}

Value global_max_pool(Value x, bool keepdims) {
  return reduce_max(x, spatial_axes("global_max_pool", x), keepdims);
}

Value adaptive_average_pool(Value x, const std::vector<std::int64_t>& sizes) {
  constexpr auto pool = [](Value v, const std::vector<std::int64_t>& kernel) { return average_pool(v, kernel); };
  return adaptive_pool("adaptive_average_pool", x, sizes, pool, adaptive_mean);
}

Value adaptive_max_pool(Value x, const std::vector<std::int64_t>& sizes) {
  constexpr auto pool = [](Value v, const std::vector<std::int64_t>& kernel) { return max_pool(v, kernel); };
  return adaptive_pool("adaptive_max_pool", x, sizes, pool, adaptive_max);
}

}  // namespace ops
}  // namespace tenon
