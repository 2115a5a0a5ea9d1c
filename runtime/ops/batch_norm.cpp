// SPDX-License-Identifier: Apache-2.0
// ops/batch_norm.cpp - normalisation of each channel by given statistics or by those of the batch.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

/// The common checks of all three ops: resolves the axis and returns the shape (channels).
Shape channels_of(Inference& at, std::size_t x) {
  at.expect_floating(x);
  if (at.shape(x).rank() < 2) at.fail(fmt::format("expected x of rank 2 or more (batch, channels, ...), got {}", at.str(x)));
  auto attributes = at.attributes.as<tenon_attributes_batch_norm>();
  attributes.axis = at.axis(attributes.axis, x);
  at.attributes = Attributes::of(attributes);
  return {at.shape(x)[static_cast<std::size_t>(attributes.axis)]};
}

void expect_epsilon(Inference& at) {
  const double epsilon = at.attributes.as<tenon_attributes_batch_norm>().epsilon;
  if (!(epsilon >= 0)) at.fail(fmt::format("epsilon is {}, expected epsilon >= 0", epsilon));
}

/// Checks that operands [first, last) have one element per channel.
void expect_per_channel(Inference& at, std::size_t x, std::size_t first, std::size_t last, const Shape& channels) {
  for (std::size_t i = first; i < last; ++i) {
    if (at.dtype(i) != accumulation_dtype(at.dtype(x))) {
      at.fail(fmt::format("expected {} values per channel for {}, got {}", name_of(accumulation_dtype(at.dtype(x))), at.str(x), at.str(i)));
    }
    if (at.shape(i) != channels) {
      at.fail(fmt::format("expected {} values, one per channel of {} along axis {}, got {}", channels[0], at.str(x),
                          at.attributes.as<tenon_attributes_batch_norm>().axis, at.str(i)));
    }
  }
}

/// Number of elements per channel.
std::int64_t elements_of_channel(const Shape& x, std::int64_t axis) {
  Shape others = x;
  others.set(static_cast<std::size_t>(axis), 1);
  return others.count();
}

void infer(Inference& at) {
  at.expect_inputs(5, 5);
  const Shape channels = channels_of(at, 0);
  expect_per_channel(at, 0, 1, 5, channels);
  expect_epsilon(at);
  auto attributes = at.attributes.as<tenon_attributes_batch_norm>();
  attributes.biased = 0;
  attributes.momentum = 0;
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), at.shape(0));
}

void infer_train(Inference& at) {
  at.expect_inputs(5, 5);
  const Shape channels = channels_of(at, 0);
  expect_per_channel(at, 0, 1, 5, channels);
  expect_epsilon(at);
  const auto& attributes = at.attributes.as<tenon_attributes_batch_norm>();
  at.expect_flag(attributes.biased, "biased");
  if (!(attributes.momentum >= 0 && attributes.momentum <= 1))
    at.fail(fmt::format("momentum is {}, expected 0 <= momentum <= 1", attributes.momentum));
  const std::int64_t n = elements_of_channel(at.shape(0), attributes.axis);
  if (n < 2) {
    at.fail(fmt::format("training needs 2 or more elements per channel for the variance, got {1} in each channel of {0}", at.str(0), n));
  }
  at.output(at.dtype(0), at.shape(0));
  for (int i = 0; i < 4; ++i) at.output(accumulation_dtype(at.dtype(0)), channels);
}

/// dy, x, scale, mean, inverse_std -> dx, dscale, dbias
void infer_train_grad(Inference& at) {
  at.expect_inputs(5, 5);
  at.expect_same_dtype(1, 0);
  at.expect_same_shape(1, 0);
  const Shape channels = channels_of(at, 1);
  expect_per_channel(at, 1, 2, 5, channels);
  tenon_attributes_batch_norm attributes{};
  attributes.axis = at.attributes.as<tenon_attributes_batch_norm>().axis;
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(1), at.shape(1));
  at.output(accumulation_dtype(at.dtype(1)), channels);
  at.output(accumulation_dtype(at.dtype(1)), channels);
}

/// Converts between values per channel and tensors of x's rank.
class Channels {
 public:
  Channels(Value x, std::int64_t axis) : size_(x.shape()[static_cast<std::size_t>(axis)]) {
    beside_.push_back(size_);
    for (std::size_t i = 0; i < x.shape().rank(); ++i) {
      if (static_cast<std::int64_t>(i) != axis) others_.push_back(static_cast<std::int64_t>(i));
      if (static_cast<std::int64_t>(i) > axis) beside_.push_back(1);
    }
  }
  /// Casts to the accumulation dtype and back.
  Value wide(Value x) const { return x.dtype() == accumulation_dtype(x.dtype()) ? x : ops::cast(x, accumulation_dtype(x.dtype())); }
  Value as_of(Value x, Value wide) const { return x.dtype() == wide.dtype() ? wide : ops::cast(wide, x.dtype()); }
  /// Values per channel, in a shape that broadcasts against x.
  Value spread(Value per_channel) const { return ops::reshape(per_channel, beside_); }
  /// Sums per channel.
  Value sum(Value x) const { return ops::reduce_sum(x, others_); }

 private:
  std::int64_t size_;
  Shape beside_;
  std::vector<std::int64_t> others_;
};

/// With r = 1 / sqrt(var + epsilon): dx = dy scale r, dscale = sum(dy (x - mean)) r, dbias = sum(dy), dmean = -dbias scale r,
/// dvar = -dscale scale r^2 / 2.
void gradient(Gradient& at) {
  const auto attributes = at.attributes.as<tenon_attributes_batch_norm>();
  const Value scale = at.input(1), mean = at.input(3), variance = at.input(4);
  const Channels channels(at.input(0), attributes.axis);
  const Value x = channels.wide(at.input(0)), dy = channels.wide(at.dy());
  const Value r = ops::rsqrt(ops::add(variance, attributes.epsilon));
  const Value factor = ops::mul(scale, r);
  if (at.needs(0)) at.set(0, channels.as_of(at.input(0), ops::mul(dy, channels.spread(factor))));
  if (at.needs(1) || at.needs(4)) {
    const Value dscale = ops::mul(channels.sum(ops::mul(dy, ops::sub(x, channels.spread(mean)))), r);
    at.set(1, dscale);
    at.set(4, ops::mul(ops::mul(ops::mul(dscale, factor), r), -0.5));
  }
  if (at.needs(2) || at.needs(3)) {
    const Value dbias = channels.sum(dy);
    at.set(2, dbias);
    at.set(3, ops::neg(ops::mul(dbias, factor)));
  }
}

/// The term of dx for a loss that reads the statistics themselves: with dm and dv its gradients with respect to mean and biased variance,
/// dm / n + dv 2 (x - mean) / n.
void add_statistics_gradient(Gradient& at, Value& dx) {
  const auto attributes = at.attributes.as<tenon_attributes_batch_norm>();
  const Value x = at.input(0), mean = at.output(3), inverse_std = at.output(4);
  const Channels channels(x, attributes.axis);
  const auto n = static_cast<double>(elements_of_channel(x.shape(), attributes.axis));
  const auto add = [](Value& sum, Value part) { sum = sum.present() ? ops::add(sum, part) : part; };
  const auto add_to_dx = [&](Value part) { add(dx, channels.as_of(x, part)); };
  Value dm, dv;
  if (at.dy(1).present()) add(dm, ops::mul(at.dy(1), attributes.momentum));
  if (at.dy(2).present()) add(dv, ops::mul(at.dy(2), attributes.momentum * (attributes.biased != 0 ? 1 : n / (n - 1))));
  if (at.dy(3).present()) add(dm, at.dy(3));
  if (at.dy(4).present()) add(dv, ops::mul(ops::mul(at.dy(4), ops::cube(inverse_std)), -0.5));
  if (dm.present()) add_to_dx(ops::mul(ops::expand(channels.spread(dm), x.shape()), 1 / n));
  if (dv.present()) add_to_dx(ops::mul(ops::sub(channels.wide(x), channels.spread(mean)), channels.spread(ops::mul(dv, 2 / n))));
}

void train_gradient(Gradient& at) {
  const auto attributes = at.attributes.as<tenon_attributes_batch_norm>();
  Value dx;
  if (at.dy(0).present()) {
    tenon_attributes_batch_norm axis{};
    axis.axis = attributes.axis;
    const std::vector<Value> parts =
        at.graph.apply(TENON_OP_BatchNormTrainGrad, {at.dy(0), at.input(0), at.input(1), at.output(3), at.output(4)}, Attributes::of(axis));
    dx = parts[0];
    at.set(1, parts[1]);
    at.set(2, parts[2]);
  }
  if (at.needs(0)) add_statistics_gradient(at, dx);
  if (dx.present()) at.set(0, dx);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (at.dy(i).present()) at.set(i + 2, ops::mul(at.dy(i), 1 - attributes.momentum));
  }
}

}  // namespace

extern const OpRules rules_batch_norm, rules_batch_norm_train, rules_batch_norm_train_grad;
const OpRules rules_batch_norm{
    "y = (x - mean) / sqrt(var + epsilon) scale + bias for each channel along axis; scale, bias, mean, var (channels), of f32 for f16 "
    "and bf16.",
    infer, PrecisionClass::inherits, per_element<2>, gradient};
const OpRules rules_batch_norm_train{
    "mean and var of each channel's n elements, var over n; y = (x - mean) inverse_std scale + bias, inverse_std = 1 / sqrt(var + "
    "epsilon); running = (1 - momentum) running + momentum (mean or var n / (n - 1); var itself if biased). n >= 2.",
    infer_train, PrecisionClass::inherits, per_element<5>, train_gradient};
const OpRules rules_batch_norm_train_grad{
    "With x' = (x - mean) inverse_std: dbias = sum(dy), dscale = sum(dy x'), dx = scale inverse_std / n (n dy - dbias - x' dscale).",
    infer_train_grad, PrecisionClass::inherits, per_element<8>};

}  // namespace graph

namespace ops {
namespace {

/// x in the form that the op needs, and the shape of its operands there: a matrix if channels are last or each activation is a channel.
struct Form {
  Shape x;
  std::int64_t axis;
  Shape sample = {};  ///< per activation: the shape of the other operands
};

Form form_of(const char* function, Value x, const BatchNormOptions& options) {
  const Shape shape = x.shape();
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const Form form{shape, options.axis};
  if (rank < 2) return form;  // the op's shape rule reports the error
  Shape sample;
  for (std::size_t i = 1; i < shape.rank(); ++i) sample.push_back(shape[i]);
  if (options.per_activation) {
    if (options.axis != 1)
      throw Error(fmt::format("{}: per_activation has no channel axis: expected axis 1, got {}", function, options.axis));
    return {{shape[0], sample.count()}, 1, sample};
  }
  if (rank > 2 && (options.axis == -1 || options.axis == rank - 1)) {
    Shape pixels = shape;
    pixels.set(shape.rank() - 1, 1);
    return {{pixels.count(), shape[shape.rank() - 1]}, 1};
  }
  return form;
}

Value as(Value x, const Shape& shape) {
  return x.shape() == shape ? x : reshape(x, shape);
}

/// The operands per channel, in the form's shape.
std::vector<Value> operands_of(const char* function, Value x, const std::vector<Value>& per_channel, const Form& form,
                               const BatchNormOptions& options) {
  std::vector<Value> operands{as(x, form.x)};
  for (Value value : per_channel) {
    if (options.per_activation && value.present()) {
      if (value.shape() != form.sample) {
        throw Error(fmt::format("{}: with per_activation, expected '{}' in the shape of x '{}' {} without its first dimension, got {}",
                                function, value.name(), x.name(), x.shape().str(), value.shape().str()));
      }
      value = as(value, {form.sample.count()});
    }
    operands.push_back(value);
  }
  return operands;
}

Attributes attributes_of(const BatchNormOptions& options, const Form& form) {
  tenon_attributes_batch_norm attributes{};
  attributes.biased = options.biased ? 1 : 0;
  attributes.axis = form.axis;
  attributes.epsilon = options.epsilon;
  attributes.momentum = options.momentum;
  return Attributes::of(attributes);
}

}  // namespace

Value batch_norm(Value x, Value scale, Value bias, Value mean, Value variance, const BatchNormOptions& options) {
  const Form form = form_of("batch_norm", x, options);
  const auto operands = operands_of("batch_norm", x, {scale, bias, mean, variance}, form, options);
  return as(graph::apply_op(TENON_OP_BatchNormalization, operands, attributes_of(options, form)), x.shape());
}

Value batch_norm_train(Value x, Value scale, Value bias, Value running_mean, Value running_variance, const BatchNormOptions& options) {
  const Form form = form_of("batch_norm_train", x, options);
  const auto operands = operands_of("batch_norm_train", x, {scale, bias, running_mean, running_variance}, form, options);
  Graph& graph = x.graph();
  const std::vector<Value> results = graph.apply(TENON_OP_BatchNormTrain, operands, attributes_of(options, form));
  graph.update(running_mean, as(results[1], running_mean.shape()));
  graph.update(running_variance, as(results[2], running_variance.shape()));
  return as(results[0], x.shape());
}

}  // namespace ops
}  // namespace tenon
