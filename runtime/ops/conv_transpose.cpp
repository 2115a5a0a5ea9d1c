// SPDX-License-Identifier: Apache-2.0
// ops/conv_transpose.cpp - transposed convolution: each element of x adds a scaled filter to y.
#include "ops/window.h"

#include "text/counted.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(2, 3);
  auto attributes = at.attributes.as<tenon_attributes_conv>();
  at.expect_same_dtype(0, 1);
  at.expect_floating(0);
  const std::size_t dims = expect_image(at, 0);
  const Shape &x = at.shape(0), &w = at.shape(1);
  if (w.rank() != dims + 2) at.fail(fmt::format("expected a kernel of {} dimensions for {}, got {}", dims + 2, at.str(0), at.str(1)));
  for (std::size_t i = 1; i < x.rank(); ++i) {
    if (x[i] == 0) at.fail(fmt::format("expected an image with channels and elements, got {}", at.str(0)));
  }
  if (w.count() == 0) at.fail(fmt::format("expected a kernel with elements, got {}", at.str(1)));
  for (std::size_t i = 2; i < w.rank(); ++i) {
    if (w[i] > max_window) at.fail(fmt::format("expected a kernel of at most {} in each dimension, got {}", max_window, at.str(1)));
  }
  const std::int64_t groups = attributes.groups;
  if (groups < 1) at.fail(fmt::format("expected 1 or more groups, got {}", groups));
  if (w[0] != x[1]) at.fail(fmt::format("expected a filter for each of the {} channels of {}, got {}", x[1], at.str(0), at.str(1)));
  if (x[1] % groups != 0)
    at.fail(fmt::format("{} do not divide the {} of {}", counted(groups, "group"), counted(x[1], "channel"), at.str(0)));
  if (at.has(2)) {
    at.expect_same_dtype(0, 2);
    if (at.shape(2) != Shape{w[1] * groups}) {
      at.fail(fmt::format("expected b of ({}), {} of {} of {}, got {}", w[1] * groups, counted(groups, "group"), counted(w[1], "filter"),
                          at.str(1), at.str(2)));
    }
  }
  normalise_spatial(at, attributes, dims);
  const Shape& y = expect_given_shape(at);
  if (y.rank() != x.rank() || y[0] != x[0] || y[1] != w[1] * groups) {
    at.fail(fmt::format("expected a result ({},{},...) of {} dimensions for {} and {} in {}, got {}", x[0], w[1] * groups, x.rank(),
                        at.str(0), at.str(1), counted(groups, "group"), y.str()));
  }
  for (std::size_t i = 0; i < dims; ++i) {
    if (y[i + 2] < 1) at.fail(fmt::format("expected a result with elements, got {}", y.str()));
    expect_window_count(at, window_axis(y, w[i + 2], attributes, i), i, x[i + 2], at.str(0));
  }
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), y);
}

/// ConvTranspose is Conv's gradient with respect to the image, so its gradients are Conv, and Conv's gradient with respect to the filters
/// with x and dy exchanged.
void gradient(Gradient& at) {
  const Value x = at.input(0), w = at.input(1), dy = at.dy();
  if (at.needs(0)) at.set(0, apply_op(TENON_OP_Conv, {dy, w}, at.attributes));
  if (at.needs(1)) at.set(1, ops::conv_weight_grad(x, dy, w.shape(), at.attributes.as<tenon_attributes_conv>()));
  if (at.needs(2)) {
    std::vector<std::int64_t> axes{0};
    for (std::size_t i = 2; i < dy.shape().rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    at.set(2, ops::reduce_sum(dy, axes));
  }
}

std::int64_t flops(const Graph& graph, const NodeInfo& node) {
  return convolution_flops(graph, node.inputs[0], node.inputs[1]);
}

}  // namespace

extern const OpRules rules_conv_transpose;
const OpRules rules_conv_transpose{
    "y[n, o, i strides + k dilations - pads_before] gets x[n, c, i...] w[c, o, k...], summed over c, i and k, plus b[o]. x (N, C, d...), w "
    "(C, O / groups, k...), b (O), y of the given shape, for which Conv with the same attributes returns the shape of x.",
    infer, PrecisionClass::low_precision, flops, gradient};

}  // namespace graph

namespace ops {

Value conv_transpose(Value x, Value w, Value b, const ConvOptions& options, const std::vector<std::int64_t>& output_padding) {
  const Value image = options.channels_last ? to_channels_first(x) : x;
  const Shape in = image.shape(), filters = w.shape();
  const std::span<const std::int64_t> kernel = filters.dims().subspan(std::min<std::size_t>(2, filters.rank()));
  ConvOptions forward = options;
  forward.same = false;  // here padding is determined by the result
  tenon_attributes_conv attributes = conv_attributes("conv_transpose", in, kernel, forward);
  const auto fail = [&](const std::string& text) {
    throw Error(fmt::format("conv_transpose of '{}' {} with '{}' {}: {}", x.name(), in.str(), w.name(), filters.str(), text));
  };
  if (kernel.empty() || kernel.size() > graph::max_spatial || in.rank() != filters.rank()) {
    fail("expected x (N, C, L) and w (C, O / groups, K), or x (N, C, H, W) and w (C, O / groups, Kh, Kw)");
  }
  if (!output_padding.empty() && output_padding.size() != kernel.size()) {
    fail(fmt::format("expected {} entries of output padding, got {}", kernel.size(), output_padding.size()));
  }
  if (options.same && !options.padding.empty()) fail("`same` and `padding` are both given");
  if (options.same && !output_padding.empty()) fail("`same` and `output_padding` are both given");
  Shape y{in[0], filters[1] * options.groups};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t stride = attributes.strides[i], dilation = attributes.dilations[i];
    for (const std::int64_t value : {stride, dilation}) {
      if (value < 1 || value > graph::max_window) {
        fail(fmt::format("expected strides and dilations of 1 to {}, got {} and {}", graph::max_window, stride, dilation));
      }
    }
    for (const std::int64_t value : {attributes.pads_before[i], attributes.pads_after[i]}) {
      if (value < 0 || value > graph::max_window) fail(fmt::format("expected padding of 0 to {}, got {}", graph::max_window, value));
    }
    const std::int64_t extra = output_padding.empty() ? 0 : output_padding[i];
    if (extra < 0 || extra >= stride) {
      fail(fmt::format("expected output padding of at least 0 and less than the stride {} in spatial dimension {}, got {}", stride, i,
                       extra));
    }
    if (in[i + 2] > graph::max_window || kernel[i] > graph::max_window) fail("the image or the kernel is too large");
    const std::int64_t spread = (in[i + 2] - 1) * stride + dilation * (kernel[i] - 1) + 1;
    if (options.same) {
      const std::int64_t total = std::max<std::int64_t>(spread - in[i + 2] * stride, 0);
      attributes.pads_before[i] = total / 2;
      attributes.pads_after[i] = total - total / 2;
      y.push_back(in[i + 2] * stride);
      continue;
    }
    const std::int64_t size = spread - attributes.pads_before[i] - attributes.pads_after[i] + extra;
    if (size < 1) {
      fail(fmt::format("spatial dimension {} of the result would have {} elements: {} minus padding {} and {}, plus {}", i, size, spread,
                       attributes.pads_before[i], attributes.pads_after[i], extra));
    }
    y.push_back(size);
  }
  std::vector<Value> operands{image, w};
  if (b.present()) operands.push_back(b);
  const Value result = graph::apply_op(TENON_OP_ConvTranspose, operands, Attributes::of(attributes), {.name = {}, .shape = y});
  return options.channels_last ? to_channels_last(result) : result;
}

}  // namespace ops
}  // namespace tenon
