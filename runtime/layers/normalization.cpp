// SPDX-License-Identifier: Apache-2.0
// Normalisation layers.
#include <fmt/format.h>

#include <algorithm>

#include <tenon/communicator.h>

#include "layers/defaults.h"
#include "layers/rule.h"

namespace tenon::layers {
namespace {

void read_gamma(LayerKeys& keys, bool scale, Initializer& out_initializer) {
  const auto value = keys.initializer("gamma_initializer", out_initializer);
  if (value && !scale) value->fail("initialises gamma, but the layer has 'scale: false'");
}

Affine read_affine(LayerKeys& keys) {
  Affine affine;
  affine.scale = keys.get<bool>("scale", true);
  affine.center = keys.get<bool>("center", true);
  read_gamma(keys, affine.scale, affine.gamma_initializer);
  const auto beta = keys.initializer("beta_initializer", affine.beta_initializer);
  if (beta && !affine.center) beta->fail("initialises beta, but the layer has 'center: false'");
  return affine;
}

double read_epsilon(LayerKeys& keys, double default_value = 1e-5) {
  return keys.get<double>("epsilon", default_value, {.lowest = 0, .above_lowest = true});
}

std::optional<std::int64_t> read_axis(LayerKeys& keys) {
  return keys.get_optional<std::int64_t>("axis", {-8, 7});
}

template <class L>
void read_norm(LayerKeys& keys, L& out_layer) {
  if constexpr (requires { out_layer.groups; }) out_layer.groups = keys.count("groups");
  if constexpr (requires { out_layer.axis; }) out_layer.axis = read_axis(keys).value_or(-1);
  out_layer.epsilon = read_epsilon(keys);
  out_layer.affine = read_affine(keys);
}

/// Scale and bias of a normalisation; absent if the layer has none.
struct AffineValues {
  Value scale, bias;
};

AffineValues affine_values(LayerBuilder& builder, const Affine& affine, const Shape& shape) {
  AffineValues values;
  const std::int64_t fan_in = std::max<std::int64_t>(1, shape.count());
  if (affine.scale) values.scale = builder.parameter("gamma", shape, affine.gamma_initializer, {.fan_in = fan_in});
  if (affine.center) values.bias = builder.parameter("beta", shape, affine.beta_initializer, {.fan_in = fan_in});
  return values;
}

std::int64_t axis_of(LayerBuilder& builder, const Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const std::int64_t counted = axis < 0 ? axis + rank : axis;
  if (counted < 1 || counted >= rank) {
    builder.fail(fmt::format("has axis {}, expected 1 to {} (or -1 to -{}) for {}", axis, rank - 1, rank - 1, shape.str()));
  }
  return counted;
}

/// The shape of a sample from `axis` on.
Shape normalized_shape(const Shape& shape, std::int64_t axis) {
  return Shape(shape.dims().subspan(static_cast<std::size_t>(axis)));
}

void expect_channels(LayerBuilder& builder, const Shape& shape) {
  if (shape.rank() < 2) builder.fail(fmt::format("expects (batch, channels, ...), got {}", shape.str()));
}

/// Three conventions: ours (that of cuDNN and PyTorch); Keras's, whose momentum is the share of the old value; and Gorgonia's, which is
/// ours with a user-given epsilon.
void read_batch_norm(LayerKeys& keys, BatchNorm& out_layer) {
  static const std::vector<yaml::Choice<Preset>> all_presets = {
      {"tenon", Preset::none}, {"none", Preset::none}, {"torch", Preset::torch}, {"keras", Preset::keras}, {"gorgonia", Preset::gorgonia}};
  const Preset preset = keys.choice("preset", keys.preset(), all_presets);
  set_defaults(out_layer, preset);
  const auto converted = [&](double momentum) { return preset == Preset::keras ? 1 - momentum : momentum; };
  out_layer.momentum = converted(keys.get<double>("momentum", converted(*out_layer.momentum), {.lowest = 0, .highest = 1}));
  out_layer.epsilon = read_epsilon(keys, *out_layer.epsilon);
  out_layer.axis = read_axis(keys);
  static const std::vector<yaml::Choice<bool>> modes = {{"spatial", false}, {"per_activation", true}};
  out_layer.per_activation = keys.choice("mode", false, modes);
  if (out_layer.per_activation && out_layer.axis) keys.find("axis")->fail("has no effect with mode: per_activation");
  out_layer.affine = read_affine(keys);
}

/// The results of BatchNormTrain with the statistics of all ranks: y, then the next running mean and variance. Two sums, of x and then of
/// the squares of its distances from the mean, so that the variance is as accurate as that of one rank.
std::vector<Value> batch_norm_over_ranks(const std::vector<Value>& operands, const tenon_attributes_batch_norm& attributes,
                                         const BatchShare& share) {
  const Value x = operands[0];
  Graph& graph = x.graph();
  const Shape shape = x.shape();
  const auto axis = static_cast<std::size_t>(attributes.axis);
  std::vector<std::int64_t> axes, channels(shape.rank(), 1);
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (i != axis) axes.push_back(static_cast<std::int64_t>(i));
  }
  channels[axis] = shape[axis];
  const auto number = [&](double value) { return graph.constant(Tensor::full(x.dtype(), {}, value)); };
  const auto as_channels = [&](Value v) { return ops::reshape(v, Shape(channels)); };
  const double own = static_cast<double>(share.counted) / static_cast<double>(share.whole);
  const auto mean_of = [&](Value v) { return ops::all_reduce({ops::mul(ops::reduce_mean(v, axes), number(own))})[0]; };
  const Value mean = mean_of(x);
  const Value distance = ops::sub(x, as_channels(mean));
  const Value variance = mean_of(ops::mul(distance, distance));
  const Value deviation = ops::sqrt(ops::add(variance, number(attributes.epsilon)));
  const Value y = ops::add(ops::mul(distance, as_channels(ops::div(operands[1], deviation))), as_channels(operands[2]));
  const std::int64_t per_channel = per_sample(shape) / shape[axis];
  const auto count = static_cast<double>(share.whole * per_channel);
  const double correction = attributes.biased != 0 || count <= 1 ? 1 : count / (count - 1);
  const auto running = [&](Value before, Value now, double factor) {
    return ops::add(ops::mul(before, number(1 - attributes.momentum)), ops::mul(now, number(attributes.momentum * factor)));
  };
  return {y, running(operands[3], mean, 1), running(operands[4], variance, correction)};
}

Value build_batch_norm(LayerBuilder& builder, const BatchNorm& layer, Value x) {
  const Shape shape = x.shape();
  expect_channels(builder, shape);
  const bool last = *layer.channels_last && (shape.rank() == 2 || builder.features_last);
  if (!last && !layer.axis && !layer.per_activation) builder.expect_channels_first(shape, "set `axis: -1`");
  const std::int64_t axis = layer.per_activation ? 1 : axis_of(builder, shape, layer.axis.value_or(last ? -1 : 1));
  const Shape sample = normalized_shape(shape, 1);
  const Shape channels = layer.per_activation ? sample : Shape{shape[static_cast<std::size_t>(axis)]};
  const AffineValues given = affine_values(builder, layer.affine, channels);
  const Value mean = builder.state("running_mean", channels, 0);
  const Value variance = builder.state("running_variance", channels, 1);
  builder.row().flops = 4 * per_sample(shape);

  // per_activation: each element of a sample is a channel, so flatten the sample.
  const Shape line{sample.count()};
  const auto as_line = [&](Value v) { return layer.per_activation && sample.rank() != 1 ? ops::reshape(v, line) : v; };
  const auto constant = [&](double value) { return builder.graph().constant(Tensor::full(x.dtype(), channels, value)); };
  const Value scale = as_line(given.scale.present() ? given.scale : constant(1));
  const Value bias = as_line(given.bias.present() ? given.bias : constant(0));
  if (layer.per_activation && sample.rank() != 1) x = ops::reshape(x, {shape[0], sample.count()});
  Value y;
  if (builder.training() && (builder.learns("gamma") || builder.learns("beta"))) {
    tenon_attributes_batch_norm attributes{};
    attributes.biased = *layer.biased ? 1 : 0;
    attributes.axis = axis;
    attributes.epsilon = *layer.epsilon;
    attributes.momentum = *layer.momentum;
    const std::vector<Value> operands{x, scale, bias, as_line(mean), as_line(variance)};
    const std::optional<BatchShare>& ranks = builder.options().sync_batch_norm;
    const std::vector<Value> results = ranks ? batch_norm_over_ranks(operands, attributes, *ranks)
                                             : builder.graph().apply(TENON_OP_BatchNormTrain, operands, Attributes::of(attributes));
    y = results[0];
    builder.keep(mean, layer.per_activation ? ops::reshape(results[1], channels) : results[1]);
    builder.keep(variance, layer.per_activation ? ops::reshape(results[2], channels) : results[2]);
  } else {
    ops::BatchNormOptions options;
    options.epsilon = *layer.epsilon;
    options.axis = axis;
    y = ops::batch_norm(x, scale, bias, as_line(mean), as_line(variance), options);
  }
  return y.shape() == shape ? y : ops::reshape(y, shape);
}

Value build_layer_norm(LayerBuilder& builder, const LayerNorm& layer, Value x) {
  const Shape shape = x.shape();
  const std::int64_t axis = axis_of(builder, shape, layer.axis);
  const AffineValues given = affine_values(builder, layer.affine, normalized_shape(shape, axis));
  builder.row().flops = 8 * per_sample(shape);
  return ops::layer_norm(x, given.scale, given.bias, axis, layer.epsilon);
}

/// For Rule::causal: each step of (batch, time, features) is normalised by itself.
template <class L>
bool over_features(const L& layer) {
  return layer.axis == -1 || layer.axis == 2;
}

void read_rms_norm(LayerKeys& keys, RMSNorm& out_layer) {
  out_layer.axis = read_axis(keys).value_or(-1);
  out_layer.epsilon = read_epsilon(keys);
  out_layer.scale = keys.get<bool>("scale", true);
  read_gamma(keys, out_layer.scale, out_layer.gamma_initializer);
}

Value build_rms_norm(LayerBuilder& builder, const RMSNorm& layer, Value x) {
  const Shape shape = x.shape();
  const std::int64_t axis = axis_of(builder, shape, layer.axis);
  const Affine affine{.scale = layer.scale, .center = false, .gamma_initializer = layer.gamma_initializer};
  builder.row().flops = 4 * per_sample(shape);
  return ops::rms_norm(x, affine_values(builder, affine, normalized_shape(shape, axis)).scale, axis, layer.epsilon);
}

Value build_group_norm(LayerBuilder& builder, const GroupNorm& layer, Value x) {
  const Shape shape = x.shape();
  expect_channels(builder, shape);
  builder.expect_channels_first(shape);
  builder.expect_positive("groups", layer.groups);
  if (shape[1] % layer.groups != 0) {
    builder.fail(fmt::format("has {} groups, expected a divisor of its {} channels", layer.groups, shape[1]));
  }
  const AffineValues given = affine_values(builder, layer.affine, {shape[1]});
  builder.row().flops = 8 * per_sample(shape);
  return ops::group_norm(x, layer.groups, given.scale, given.bias, layer.epsilon);
}

Value build_instance_norm(LayerBuilder& builder, const InstanceNorm& layer, Value x) {
  const Shape shape = x.shape();
  expect_channels(builder, shape);
  if (shape.rank() < 3) {
    builder.fail(fmt::format("expects (batch, channels, d...), got {}: a single value has no variance", shape.str()));
  }
  builder.expect_channels_first(shape);
  const AffineValues given = affine_values(builder, layer.affine, {shape[1]});
  builder.row().flops = 8 * per_sample(shape);
  return ops::instance_norm(x, given.scale, given.bias, layer.epsilon);
}

void read_lrn(LayerKeys& keys, LRN& out_layer) {
  out_layer.size = keys.count("size", out_layer.size);
  out_layer.alpha = keys.get<double>("alpha", out_layer.alpha);
  out_layer.beta = keys.get<double>("beta", out_layer.beta);
  out_layer.bias = keys.get<double>("bias", out_layer.bias, {.lowest = 0, .above_lowest = true});
}

Value build_lrn(LayerBuilder& builder, const LRN& layer, Value x) {
  builder.expect_channels_first(x.shape());
  builder.row().flops = (2 + layer.size) * per_sample(x.shape());
  return ops::lrn(x, layer.size, layer.alpha, layer.beta, layer.bias);
}

}  // namespace

TENON_LAYER(BatchNorm, "batch_norm", read_batch_norm, build_batch_norm);
TENON_LAYER(LayerNorm, "layer_norm", read_norm, build_layer_norm, nullptr, over_features<LayerNorm>);
TENON_LAYER(RMSNorm, "rms_norm", read_rms_norm, build_rms_norm, nullptr, over_features<RMSNorm>);
TENON_LAYER(GroupNorm, "group_norm", read_norm, build_group_norm);
TENON_LAYER(InstanceNorm, "instance_norm", read_norm, build_instance_norm);
TENON_LAYER(LRN, "lrn", read_lrn, build_lrn);

}  // namespace tenon::layers
