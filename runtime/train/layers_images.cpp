// SPDX-License-Identifier: Apache-2.0
// Layers for images (batch, channels, d...): convolutions, pooling, resizing.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "train/layers.h"

namespace tenon::train {
namespace {

using Kind = LayerDefinition::Kind;

/// Checks that x has `dims` spatial dimensions. An image of height 1 is also accepted as a signal.
void expect_image(LayerBuild& build, const LayerDefinition& layer, const Shape& shape, std::size_t dims) {
  const bool line = dims == 1 && shape.rank() == 4 && shape[2] == 1;
  if (shape.rank() == dims + 2 || line) return;
  std::string hint;
  if (shape.rank() == dims + 1) {
    std::vector<std::int64_t> one{1};
    for (std::size_t i = 1; i < shape.rank(); ++i) one.push_back(shape[i]);
    hint = fmt::format("; for one channel, put reshape: {{shape: [{}]}} before it", fmt::join(one, ", "));
  }
  layer.fail(
      fmt::format("'{}' expects (batch, channels, {}), got {}{}", build.name(), dims == 1 ? "length" : "height, width", shape.str(), hint));
}

std::size_t spatial_dims(LayerBuild& build, const LayerDefinition& layer, const Shape& shape) {
  if (shape.rank() != 3 && shape.rank() != 4) {
    layer.fail(
        fmt::format("'{}' expects (batch, channels, length) or (batch, channels, height, width), got {}", build.name(), shape.str()));
  }
  return shape.rank() - 2;
}

template <class Options>
Options options_of(const WindowDefinition& window) {
  Options options;
  options.strides = window.strides;
  options.dilations = window.dilation;
  options.padding = window.padding;
  options.same = window.same;
  options.ceil_mode = window.ceil_mode;
  return options;
}

std::int64_t per_sample(const Shape& shape) {
  return shape[0] == 0 ? 0 : shape.count() / shape[0];
}

/// Counts FLOPs (each element of `many` is multiplied by `weights` weights) and applies the activation.
Value finish(LayerBuild& build, const LayerDefinition& layer, Value y, bool biased, const Shape& many, std::int64_t weights) {
  build.features_last = false;
  build.row().flops = 2 * per_sample(many) * weights + (biased ? per_sample(y.shape()) : 0);
  return build.activate(layer, y);
}

Value convolution(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const std::vector<std::int64_t>& size = layer.window.size;
  expect_image(build, layer, x.shape(), size.size());
  const std::int64_t channels = x.shape()[1];
  const bool depthwise = layer.kind == Kind::depthwise_conv2d;
  const std::int64_t groups = depthwise ? channels : layer.window.groups;
  const std::int64_t filters = depthwise ? channels * layer.units : layer.units;
  if (channels == 0) layer.fail(fmt::format("'{}' expects at least 1 channel, got {}", build.name(), x.shape().str()));
  if (channels % groups != 0 || filters % groups != 0) {
    layer.fail(
        fmt::format("'{}' has {} groups, expected a divisor of its {} channels and {} filters", build.name(), groups, channels, filters));
  }
  Shape kernel{filters, channels / groups};
  for (const std::int64_t k : size) kernel.push_back(k);
  const std::int64_t fan_in = channels / groups * product(size);
  const Value w = build.kernel(layer, kernel, {.fan_in = fan_in});
  Value b;
  if (layer.bias) b = build.parameter(layer, "bias", {filters}, layer.bias_initializer, {.fan_in = fan_in});
  auto options = options_of<ops::ConvOptions>(layer.window);
  options.groups = groups;
  const Value y = size.size() == 1 ? ops::conv1d(x, w, b, options) : ops::conv2d(x, w, b, options);
  return finish(build, layer, y, layer.bias, y.shape(), fan_in);
}

Value transposed(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const std::vector<std::int64_t>& size = layer.window.size;
  expect_image(build, layer, x.shape(), size.size());
  const std::int64_t channels = x.shape()[1], groups = layer.window.groups;
  if (channels == 0) layer.fail(fmt::format("'{}' expects at least 1 channel, got {}", build.name(), x.shape().str()));
  if (channels % groups != 0 || layer.units % groups != 0) {
    layer.fail(fmt::format("'{}' has {} groups, expected a divisor of its {} channels and {} filters", build.name(), groups, channels,
                           layer.units));
  }
  Shape kernel{channels, layer.units / groups};
  for (const std::int64_t k : size) kernel.push_back(k);
  const std::int64_t fan_in = channels / groups * product(size);
  const Value w = build.kernel(layer, kernel, {.fan_in = fan_in});
  Value b;
  if (layer.bias) b = build.parameter(layer, "bias", {layer.units}, layer.bias_initializer, {.fan_in = fan_in});
  auto options = options_of<ops::ConvOptions>(layer.window);
  options.groups = groups;
  const Value y = ops::conv_transpose(x, w, b, options, layer.window.output_padding);
  return finish(build, layer, y, layer.bias, x.shape(), layer.units / groups * product(size));
}

Value pool(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const WindowDefinition& window = layer.window;
  expect_image(build, layer, x.shape(), window.size.size());
  const auto options = options_of<ops::WindowOptions>(window);
  const bool largest = layer.kind == Kind::max_pool1d || layer.kind == Kind::max_pool2d;
  // An image of height 1 is pooled as a signal.
  const bool line = window.size.size() == 1 && x.shape().rank() == 4;
  const Shape shape = x.shape();
  if (line) x = ops::reshape(x, {shape[0], shape[1], shape[3]});
  Value y = largest ? ops::max_pool(x, window.size, options) : ops::average_pool(x, window.size, options, window.count_include_pad);
  if (line) y = ops::reshape(y, {shape[0], shape[1], 1, y.shape()[2]});
  build.row().flops = per_sample(y.shape()) * product(window.size);
  return y;
}

Value global_pool(LayerBuild& build, const LayerDefinition& layer, Value x) {
  if (x.shape().rank() < 3) layer.fail(fmt::format("'{}' expects (batch, channels, d...), got {}", build.name(), x.shape().str()));
  build.row().flops = per_sample(x.shape());
  return layer.kind == Kind::global_max_pool ? ops::global_max_pool(x, false) : ops::global_average_pool(x, false);
}

Value adaptive_pool(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const std::size_t dims = spatial_dims(build, layer, x.shape());
  std::vector<std::int64_t> sizes = layer.window.size;
  if (sizes.size() == 1) sizes.assign(dims, sizes[0]);
  if (sizes.size() != dims) {
    layer.fail(fmt::format("'{}' expects one size for each of {} spatial dimensions, got {}", build.name(), dims, sizes.size()));
  }
  build.row().flops = per_sample(x.shape());
  return ops::adaptive_average_pool(x, sizes);
}

Value upsample(LayerBuild& build, const LayerDefinition& layer, Value x) {
  expect_image(build, layer, x.shape(), 2);
  return ops::upsample(x, layer.window.size, layer.bilinear ? ops::ResizeMode::linear : ops::ResizeMode::nearest);
}

Value pad_channels(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const Shape shape = x.shape();
  if (shape.rank() < 2 || shape[1] > layer.units) {
    layer.fail(fmt::format("'{}' expects at most {} channels in (batch, channels, ...), got {}", build.name(), layer.units, shape.str()));
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(shape.rank(), {0, 0});
  widths[1].second = layer.units - shape[1];
  return widths[1].second == 0 ? x : ops::pad(x, widths);
}

const LayerRule rules[] = {
    {Kind::conv1d, "conv1d", "Conv1D", convolution},
    {Kind::conv2d, "conv2d", "Conv2D", convolution},
    {Kind::depthwise_conv2d, "depthwise_conv2d", "DepthwiseConv2D", convolution},
    {Kind::conv2d_transpose, "conv2d_transpose", "Conv2DTranspose", transposed},
    {Kind::max_pool1d, "max_pool1d", "MaxPooling1D", pool},
    {Kind::max_pool2d, "max_pool2d", "MaxPooling2D", pool},
    {Kind::average_pool1d, "average_pool1d", "AveragePooling1D", pool},
    {Kind::average_pool2d, "average_pool2d", "AveragePooling2D", pool},
    {Kind::global_average_pool, "global_average_pool", "GlobalAveragePooling", global_pool},
    {Kind::global_max_pool, "global_max_pool", "GlobalMaxPooling", global_pool},
    {Kind::adaptive_average_pool, "adaptive_average_pool", "AdaptiveAveragePooling", adaptive_pool},
    {Kind::upsample2d, "upsample2d", "UpSampling2D", upsample},
    {Kind::pad_channels, "pad_channels", "PadChannels", pad_channels},
};

}  // namespace

std::span<const LayerRule> image_layers() {
  return rules;
}

}  // namespace tenon::train
