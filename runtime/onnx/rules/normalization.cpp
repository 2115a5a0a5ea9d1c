// SPDX-License-Identifier: Apache-2.0
// onnx/rules/normalization.cpp - batch, layer, group, instance, RMS, Lp and mean-variance normalisation.
#include <fmt/core.h>

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "onnx/rules.h"
#include "onnx/rules/dtypes.h"

namespace tenon::onnx {
namespace {

/// The dtype in which sums of squares are computed where a result of 16 bits would lose them.
DType wide(DType dtype) {
  return size_of(dtype) == 2 ? DType::f32 : dtype;
}

Value reshaped(Value x, const Shape& shape) {
  return x.shape() == shape ? x : ops::reshape(x, shape);
}

bool is_empty(Value x) {
  return x.shape().count() == 0;
}

/// x (N, C, d...) as BatchNormTrain takes it: (N, C * d...) if each activation of a sample is a channel. Statistics are (channels).
struct BatchNormForm {
  Shape x, statistics;  ///< as the node has them
  bool per_activation;

  Shape channels() const { return {statistics.count()}; }
  Shape image() const { return per_activation ? Shape{x[0], statistics.count()} : x; }
};

/// y and running statistics of training, and of the versions before 14 also the batch's own. `is_model`: in a training step of a model, of
/// which the running statistics are state; their variance is unbiased, as in PyTorch.
void batch_norm_train(Node& node, Value x, const std::vector<Value>& per_channel, const BatchNormForm& form, bool is_model) {
  tenon_attributes_batch_norm attributes{};
  attributes.biased = is_model ? 0 : 1;
  attributes.axis = 1;
  attributes.epsilon = node.number("epsilon", 1e-5);
  attributes.momentum = 1 - node.number("momentum", 0.9);
  const Value image = reshaped(x, form.image());
  std::vector<Value> operands{image};
  for (const Value& value : per_channel) operands.push_back(reshaped(value, form.channels()));
  const std::vector<Value> results = node.graph().apply(TENON_OP_BatchNormTrain, operands, Attributes::of(attributes));
  const auto statistic = [&](std::size_t i, std::size_t operand, Value value) {
    node.output(i, cast_to(reshaped(value, form.statistics), node.dtype(operand)));
  };
  node.output(0, reshaped(results[0], node.shape(0)));
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (is_model) node.set_state(i + 2, cast_to(reshaped(results[i], form.statistics), node.dtype(i + 2)));
  }
  if (node.needs_output(1)) statistic(1, 3, results[1]);
  if (node.needs_output(2)) statistic(2, 4, results[2]);
  if (node.needs_output(3)) statistic(3, 3, results[3]);
  if (node.needs_output(4)) {
    std::vector<std::int64_t> axes(image.shape().rank());
    std::iota(axes.begin(), axes.end(), 0);
    axes.erase(axes.begin() + 1);
    statistic(4, 4, ops::variance(cast_to(image, results[3].dtype()), axes));
  }
}

void batch_norm(Node& node, bool spatial, bool training) {
  Value x = node.input(0);
  if (x.shape().rank() == 0) node.fail("expected x (N, C, d...), got a scalar");
  if (x.shape().rank() == 1) x = ops::reshape(x, Shape{x.shape()[0], 1});  // one channel
  const Shape shape = x.shape();
  const BatchNormForm form{shape, spatial ? Shape{shape[1]} : Shape(shape.dims().subspan(1)), !spatial};
  const bool is_model = node.mode() != nullptr && node.is_weight(3) && node.is_weight(4);
  std::vector<Value> per_channel;
  for (std::size_t i = 1; i < 5; ++i) {
    if (node.shape(i) != form.statistics) {
      node.fail(
          fmt::format("expected operand {} of shape {} for x {}, got {}", i, form.statistics.str(), shape.str(), node.shape(i).str()));
    }
    const bool is_state = i > 2 && is_model;
    per_channel.push_back(cast_to(is_state ? node.state(i) : node.input(i), wide(x.dtype())));
  }
  // Frozen batch normalisation uses its running statistics in training steps, too.
  if (is_model) training = node.mode()->training && (node.learns(1) || node.learns(2));
  if (training) return batch_norm_train(node, x, per_channel, form, is_model);
  const ops::BatchNormOptions options{.epsilon = node.number("epsilon", 1e-5), .per_activation = !spatial};
  node.output(0, reshaped(ops::batch_norm(x, per_channel[0], per_channel[1], per_channel[2], per_channel[3], options), node.shape(0)));
  // evaluation leaves the running statistics as they are
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (node.needs_output(i)) node.output(i, node.input(i + 2));
  }
}

/// Versions 7 to 13 train if the node has results other than y.
bool has_statistics(const Node& node) {
  for (std::size_t i = 1; i < node.output_count(); ++i) {
    if (node.needs_output(i)) return true;
  }
  return false;
}

/// A scale or bias that broadcasts to x, in the shape of a line; absent if it differs between lines.
Value of_line(Value value, const Shape& line) {
  const Shape shape = value.shape();
  const std::size_t leading = shape.rank() > line.rank() ? shape.rank() - line.rank() : 0;
  for (std::size_t i = 0; i < leading; ++i) {
    if (shape[i] != 1) return {};
  }
  const Value inner = leading == 0 ? value : ops::reshape(value, Shape(shape.dims().subspan(leading)));
  return inner.shape() == line ? inner : ops::expand(inner, line);
}

/// LayerNormalization or RMSNormalization (the Tenon op) of the dimensions from `axis` on, scaled, with a bias if LayerNormalization has
/// one, and its statistics. The result has the dtype `result`.
void normalise_lines(Node& node, tenon_op op, DType result) {
  const Value x = node.input(0);
  const Shape shape = x.shape();
  tenon_attributes_layer_norm attributes{};
  attributes.axis = node.resolve_axis(node.integer("axis", -1), node.rank(0));
  attributes.epsilon = node.number("epsilon", 1e-5);
  const Shape line(shape.dims().subspan(static_cast<std::size_t>(attributes.axis)));
  if (line.count() == 0 && !node.needs_output(1) && !node.needs_output(2)) return node.output(0, cast_to(x, result));
  // Statistics are results of f32, which those of a norm of 16 bits are too coarse for.
  const bool is_wide = node.needs_output(1) || node.needs_output(2) || result != x.dtype();
  const DType dtype = is_wide ? wide(x.dtype()) : x.dtype();
  std::vector<Value> given, shared;
  const std::size_t operands = op == TENON_OP_LayerNormalization ? 3 : 2;
  bool is_shared = true;
  for (std::size_t i = 1; i < operands; ++i) {
    given.push_back(node.has_input(i) ? cast_to(node.input(i), dtype) : Value());
    shared.push_back(given.back().present() ? of_line(given.back(), line) : Value());
    is_shared = is_shared && given.back().present() == shared.back().present();
  }
  std::vector<Value> all{cast_to(x, dtype)};
  for (const Value& value : shared) all.push_back(is_shared ? value : Value());
  const std::vector<Value> results = node.graph().apply(op, all, Attributes::of(attributes));
  Value y = results[0];
  if (!is_shared) {
    if (given[0].present()) y = ops::mul(y, given[0]);
    if (given.size() > 1 && given[1].present()) y = ops::add(y, given[1]);
    if (y.shape() != shape)
      node.fail(fmt::format("expected a scale and a bias that broadcast to x {}, got a result {}", shape.str(), y.shape().str()));
  }
  node.output(0, cast_to(y, result));
  for (std::size_t i = 1; i < results.size(); ++i) {
    if (node.needs_output(i)) node.output(i, cast_to(results[i], node.element_type("stash_type", DType::f32)));
  }
}

void layer_normalization(Node& node) {
  normalise_lines(node, TENON_OP_LayerNormalization, node.dtype(0));
}

/// The result has the scale's dtype.
void rms_normalization(Node& node) {
  normalise_lines(node, TENON_OP_RMSNormalization, node.dtype(1));
}

/// One value for each group of channels as one for each channel.
Value by_channel(const Node& node, Value value, std::int64_t groups, std::int64_t channels) {
  if (value.shape() == Shape{channels}) return value;
  if (value.shape() != Shape{groups} || groups < 1) {
    node.fail(fmt::format("expected a scale and a bias of {} groups, got {}", groups, value.shape().str()));
  }
  return ops::reshape(ops::expand(ops::reshape(value, Shape{groups, 1}), Shape{groups, channels / groups}), Shape{channels});
}

void group_normalization(Node& node, bool scale_per_group) {
  const Value x = node.input(0);
  if (x.shape().rank() < 2) node.fail(fmt::format("expected x (N, C, d...), got {}", x.shape().str()));
  if (is_empty(x)) return node.output(0, x);
  const std::int64_t groups = node.integer("num_groups"), channels = x.shape()[1];
  if (groups < 1 || channels % groups != 0) node.fail(fmt::format("expected num_groups to divide {} channels, got {}", channels, groups));
  Value scale = node.input(1), bias = node.input(2);
  if (scale_per_group) {
    scale = by_channel(node, scale, groups, channels);
    bias = by_channel(node, bias, groups, channels);
  }
  node.output(0, ops::group_norm(x, groups, scale, bias, node.number("epsilon", 1e-5)));
}

void instance_normalization(Node& node) {
  const Value x = node.input(0);
  node.output(0, is_empty(x) ? x : ops::instance_norm(x, node.input(1), node.input(2), node.number("epsilon", 1e-5)));
}

/// (x - mean) / (standard deviation + 1e-9) over `axes`.
void mean_variance_normalization(Node& node) {
  std::vector<std::int64_t> axes = node.integers("axes");
  if (!node.has("axes")) axes = {0, 2, 3};
  for (std::int64_t& axis : axes) axis = node.resolve_axis(axis, node.rank(0));
  if (is_empty(node.input(0))) return node.output(0, node.input(0));
  const Value x = cast_to(node.input(0), wide(node.dtype(0)));
  const Value centered = ops::sub(x, ops::reduce_mean(x, axes, true));
  // As a norm, the deviation has a derivative also where it is 0.
  const Value norm = ops::norm(centered, 2, axes, true);
  const double n = static_cast<double>(x.shape().count()) / static_cast<double>(norm.shape().count());
  const Value deviation = ops::mul(norm, 1 / std::sqrt(n));
  node.output(0, cast_to(ops::div(centered, ops::add(deviation, 1e-9)), node.dtype(0)));
}

/// x / norm along an axis, 0 where the norm is 0.
void lp_normalization(Node& node) {
  const std::int64_t p = node.integer("p", 2), axis = node.resolve_axis(node.integer("axis", -1), node.rank(0));
  if (p != 1 && p != 2) node.fail(fmt::format("expected p of 1 or 2, got {}", p));
  const Value x = cast_to(node.input(0), wide(node.dtype(0)));
  const Value norm = ops::norm(x, static_cast<double>(p), {axis}, true);
  const Value is_zero = ops::equal(norm, node.scalar(x.dtype(), 0));
  node.output(0, cast_to(ops::div(x, ops::where(is_zero, node.scalar(x.dtype(), 1), norm)), node.dtype(0)));
}

}  // namespace

const std::vector<Rule>& normalization_rules() {
  static const std::vector<Rule> rules = {
      {"BatchNormalization", 1, [](Node& n) { batch_norm(n, n.flag("spatial", true), !n.flag("is_test")); }},
      {"BatchNormalization", 7, [](Node& n) { batch_norm(n, n.flag("spatial", true), has_statistics(n)); }},
      {"BatchNormalization", 9, [](Node& n) { batch_norm(n, true, has_statistics(n)); }},
      {"BatchNormalization", 14, [](Node& n) { batch_norm(n, true, n.flag("training_mode")); }},
      {"GroupNormalization", 18, [](Node& n) { group_normalization(n, true); }},
      {"GroupNormalization", 21, [](Node& n) { group_normalization(n, false); }},
      {"InstanceNormalization", 1, instance_normalization},
      // ONNX Runtime writes this op, and SimplifiedLayerNormalization, into models of older versions.
      {"LayerNormalization", 1, layer_normalization},
      {"LpNormalization", 1, lp_normalization},
      {"MeanVarianceNormalization", 9, mean_variance_normalization},
      {"RMSNormalization", 23, rms_normalization},
      {"SimplifiedLayerNormalization", 1, rms_normalization},
  };
  return rules;
}

}  // namespace tenon::onnx
