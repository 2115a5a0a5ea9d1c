// SPDX-License-Identifier: Apache-2.0
// Normalisation layers.
#include <fmt/core.h>

#include "train/layers.h"

namespace tenon::train {
namespace {

using Kind = LayerDefinition::Kind;

/// Scale and bias of a normalisation; absent if the layer has none.
struct Affine {
  Value scale, bias;
};

Affine affine(LayerBuild& build, const LayerDefinition& layer, const Shape& shape) {
  Affine values;
  const std::int64_t fan_in = std::max<std::int64_t>(1, shape.count());
  if (layer.norm.scale) values.scale = build.parameter(layer, "gamma", shape, layer.norm.gamma_initializer, {.fan_in = fan_in});
  if (layer.norm.center) values.bias = build.parameter(layer, "beta", shape, layer.norm.beta_initializer, {.fan_in = fan_in});
  return values;
}

std::int64_t per_sample(const Shape& shape) {
  return shape[0] == 0 ? 0 : shape.count() / shape[0];
}

std::size_t axis_of(LayerBuild& build, const LayerDefinition& layer, const Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const std::int64_t counted = axis < 0 ? axis + rank : axis;
  if (counted < 1 || counted >= rank) {
    layer.fail(
        fmt::format("'{}' has axis {}, expected 1 to {} (or -1 to -{}) for {}", build.name(), axis, rank - 1, rank - 1, shape.str()));
  }
  return static_cast<std::size_t>(counted);
}

Value batch_norm(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const NormDefinition& norm = layer.norm;
  const Shape shape = x.shape();
  if (shape.rank() < 2) layer.fail(fmt::format("'{}' expects (batch, channels, ...), got {}", build.name(), shape.str()));
  const bool last = norm.channels_last && (shape.rank() == 2 || build.features_last);
  const std::size_t axis = norm.per_activation ? 1 : axis_of(build, layer, shape, norm.axis.value_or(last ? -1 : 1));
  const Shape sample(shape.dims().subspan(1));
  const Shape channels = norm.per_activation ? sample : Shape{shape[axis]};
  const Affine given = affine(build, layer, channels);
  const Value mean = build.state(layer, "running_mean", channels, 0);
  const Value variance = build.state(layer, "running_variance", channels, 1);
  build.row().flops = 4 * per_sample(shape);

  // per_activation: each element of a sample is a channel, so flatten the sample.
  const Shape line{sample.count()};
  const auto as_line = [&](Value v) { return norm.per_activation && sample.rank() != 1 ? ops::reshape(v, line) : v; };
  const auto constant = [&](double value) { return build.graph().constant(Tensor::full(x.dtype(), channels, value)); };
  const Value scale = as_line(given.scale.present() ? given.scale : constant(1));
  const Value bias = as_line(given.bias.present() ? given.bias : constant(0));
  if (norm.per_activation && sample.rank() != 1) x = ops::reshape(x, {shape[0], sample.count()});
  Value y;
  if (build.training()) {
    tenon_attributes_batch_norm attributes{};
    attributes.biased = norm.biased ? 1 : 0;
    attributes.axis = static_cast<std::int64_t>(axis);
    attributes.epsilon = norm.epsilon;
    attributes.momentum = norm.momentum;
    const std::vector<Value> results =
        build.graph().apply(TENON_OP_BatchNormTrain, {x, scale, bias, as_line(mean), as_line(variance)}, Attributes::of(attributes));
    y = results[0];
    build.keep(mean, norm.per_activation ? ops::reshape(results[1], channels) : results[1]);
    build.keep(variance, norm.per_activation ? ops::reshape(results[2], channels) : results[2]);
  } else {
    ops::BatchNormOptions options;
    options.epsilon = norm.epsilon;
    options.axis = static_cast<std::int64_t>(axis);
    y = ops::batch_norm(x, scale, bias, as_line(mean), as_line(variance), options);
  }
  return y.shape() == shape ? y : ops::reshape(y, shape);
}

Value layer_norm(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const Shape shape = x.shape();
  const std::size_t axis = axis_of(build, layer, shape, layer.norm.axis.value_or(-1));
  const Affine given = affine(build, layer, Shape(shape.dims().subspan(axis)));
  build.row().flops = 8 * per_sample(shape);
  return ops::layer_norm(x, given.scale, given.bias, static_cast<std::int64_t>(axis), layer.norm.epsilon);
}

Value rms_norm(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const Shape shape = x.shape();
  const std::size_t axis = axis_of(build, layer, shape, layer.norm.axis.value_or(-1));
  const Affine given = affine(build, layer, Shape(shape.dims().subspan(axis)));
  build.row().flops = 4 * per_sample(shape);
  return ops::rms_norm(x, given.scale, static_cast<std::int64_t>(axis), layer.norm.epsilon);
}

Value group_norm(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const Shape shape = x.shape();
  if (shape.rank() < 2) layer.fail(fmt::format("'{}' expects (batch, channels, ...), got {}", build.name(), shape.str()));
  const bool instance = layer.kind == Kind::instance_norm;
  if (instance && shape.rank() < 3) {
    layer.fail(fmt::format("'{}' expects (batch, channels, d...), got {}: a single value has no variance", build.name(), shape.str()));
  }
  if (!instance && shape[1] % layer.norm.groups != 0) {
    layer.fail(fmt::format("'{}' has {} groups, expected a divisor of its {} channels", build.name(), layer.norm.groups, shape[1]));
  }
  const Affine given = affine(build, layer, {shape[1]});
  build.row().flops = 8 * per_sample(shape);
  return instance ? ops::instance_norm(x, given.scale, given.bias, layer.norm.epsilon)
                  : ops::group_norm(x, layer.norm.groups, given.scale, given.bias, layer.norm.epsilon);
}

Value lrn(LayerBuild& build, const LayerDefinition& layer, Value x) {
  build.row().flops = (2 + layer.norm.size) * per_sample(x.shape());
  return ops::lrn(x, layer.norm.size, layer.norm.alpha, layer.norm.beta, layer.norm.bias);
}

const LayerRule rules[] = {
    {Kind::batch_norm, "batch_norm", "BatchNorm", batch_norm},
    {Kind::layer_norm, "layer_norm", "LayerNorm", layer_norm},
    {Kind::rms_norm, "rms_norm", "RMSNorm", rms_norm},
    {Kind::group_norm, "group_norm", "GroupNorm", group_norm},
    {Kind::lrn, "lrn", "LRN", lrn},
    {Kind::instance_norm, "instance_norm", "InstanceNorm", group_norm},
};

}  // namespace

std::span<const LayerRule> norm_layers() {
  return rules;
}

}  // namespace tenon::train
