// SPDX-License-Identifier: Apache-2.0
// Convolutions of images (batch, channels, d...).
#include <fmt/format.h>

#include "layers/image.h"
#include "layers/rule.h"

namespace tenon::layers {
namespace {

template <int dims, class L>
void read_convolution(LayerKeys& keys, L& out_layer) {
  if constexpr (requires { out_layer.filters; }) {
    out_layer.filters = keys.count("filters");
  } else {
    out_layer.multiplier = keys.count("multiplier", 1);
  }
  out_layer.kernel_size = read_sizes(keys, "kernel_size", dims);
  out_layer.strides = read_sizes(keys, "strides", dims, {});
  out_layer.padding = read_padding(keys, dims);
  out_layer.dilation = read_sizes(keys, "dilation", dims, {});
  if constexpr (requires { out_layer.groups; }) out_layer.groups = keys.count("groups", 1);
  if constexpr (requires { out_layer.output_padding; }) out_layer.output_padding = read_sizes(keys, "output_padding", dims, {}, 0);
  out_layer.activation = keys.activation();
  out_layer.weights = keys.weights();
}

/// The number of channels, at least 1.
std::int64_t channels_of(LayerBuilder& builder, const Shape& shape) {
  if (shape[1] == 0) builder.fail(fmt::format("expects at least 1 channel, got {}", shape.str()));
  return shape[1];
}

void expect_groups(LayerBuilder& builder, std::int64_t groups, std::int64_t channels, std::int64_t filters) {
  builder.expect_positive("filters", filters);
  builder.expect_positive("groups", groups);
  if (channels % groups != 0 || filters % groups != 0) {
    builder.fail(fmt::format("has {} groups, expected a divisor of its {} channels and {} filters", groups, channels, filters));
  }
}

Shape kernel_shape(std::int64_t outputs, std::int64_t inputs, const std::vector<std::int64_t>& size) {
  Shape shape{outputs, inputs};
  for (const std::int64_t k : size) shape.push_back(k);
  return shape;
}

/// Counts FLOPs (each element of `many` is multiplied by `weights` weights) and applies the activation.
template <class L>
Value finish(LayerBuilder& builder, const L& layer, Value y, const Shape& many, std::int64_t weights) {
  builder.features_last = false;
  builder.row().flops = 2 * per_sample(many) * weights + (layer.weights.bias ? per_sample(y.shape()) : 0);
  return builder.activate(layer.activation, y);
}

template <class L>
Value convolve(LayerBuilder& builder, const L& layer, Value x, std::size_t dims, std::int64_t groups, std::int64_t filters) {
  const std::int64_t channels = channels_of(builder, x.shape());
  expect_groups(builder, groups, channels, filters);
  const std::vector<std::int64_t> size = kernel_of(builder, layer.kernel_size, dims);
  const std::int64_t fan_in = channels / groups * product(size);
  const Value w = builder.kernel(layer.weights, kernel_shape(filters, channels / groups, size), {.fan_in = fan_in});
  const Value b = builder.bias(layer.weights, {filters}, {.fan_in = fan_in});
  auto options = options_of<ops::ConvOptions>(builder, layer, dims);
  options.groups = groups;
  const Value y = dims == 1 ? ops::conv1d(x, w, b, options) : ops::conv2d(x, w, b, options);
  return finish(builder, layer, y, y.shape(), fan_in);
}

template <int dims>
Value build_conv(LayerBuilder& builder, const Conv<dims>& layer, Value x) {
  expect_image(builder, x.shape(), dims);
  return convolve(builder, layer, x, dims, layer.groups, layer.filters);
}

Value build_depthwise(LayerBuilder& builder, const DepthwiseConv2D& layer, Value x) {
  expect_image(builder, x.shape(), 2);
  const std::int64_t channels = channels_of(builder, x.shape());
  return convolve(builder, layer, x, 2, channels, channels * layer.multiplier);
}

Value build_transpose(LayerBuilder& builder, const Conv2DTranspose& layer, Value x) {
  expect_image(builder, x.shape(), 2);
  const std::int64_t channels = channels_of(builder, x.shape()), filters = layer.filters, groups = layer.groups;
  expect_groups(builder, groups, channels, filters);
  const std::vector<std::int64_t> size = kernel_of(builder, layer.kernel_size, 2);
  const std::int64_t fan_in = channels / groups * product(size);
  const Value w = builder.kernel(layer.weights, kernel_shape(channels, filters / groups, size), {.fan_in = fan_in});
  const Value b = builder.bias(layer.weights, {filters}, {.fan_in = fan_in});
  auto options = options_of<ops::ConvOptions>(builder, layer, 2);
  options.groups = groups;
  const Value y = ops::conv_transpose(x, w, b, options, sizes_of(builder, layer.output_padding, 2));
  return finish(builder, layer, y, x.shape(), filters / groups * product(size));
}

}  // namespace

TENON_LAYER(Conv1D, "conv1d", read_convolution<1>, build_conv<1>, &Conv1D::filters);
TENON_LAYER(Conv2D, "conv2d", read_convolution<2>, build_conv<2>, &Conv2D::filters);
TENON_LAYER(DepthwiseConv2D, "depthwise_conv2d", read_convolution<2>, build_depthwise);
TENON_LAYER(Conv2DTranspose, "conv2d_transpose", read_convolution<2>, build_transpose, &Conv2DTranspose::filters);

}  // namespace tenon::layers
