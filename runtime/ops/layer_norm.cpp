// SPDX-License-Identifier: Apache-2.0
// ops/layer_norm.cpp - normalisation of each row by its mean and variance: layer, group and instance norm.
#include <tenon/error.h>

#include "ops/line_norm.h"
#include "text/counted.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(1, 3);
  const Lines lines = lines_of(at, 0);
  expect_shape(at, 0, 1, lines.line, "for a line");
  expect_shape(at, 0, 2, lines.line, "for a line");
  at.output(at.dtype(0), at.shape(0));
  at.output(at.dtype(0), lines.statistics);
  at.output(at.dtype(0), lines.statistics);
}

/// dy, x, scale?, mean, inverse_std -> dx, dscale, dbias
void infer_gradient(Inference& at) {
  at.expect_inputs(2, 5);
  if (!at.has(3) || !at.has(4)) at.fail("expected mean and inverse_std, as returned by the forward op");
  at.expect_same_dtype(1, 0);
  at.expect_same_shape(1, 0);
  const Lines lines = lines_of(at, 1);
  expect_shape(at, 1, 2, lines.line, "for a line");
  expect_shape(at, 1, 3, lines.statistics, "for the lines");
  expect_shape(at, 1, 4, lines.statistics, "for the lines");
  at.output(at.dtype(1), at.shape(1));
  at.output(at.dtype(1), lines.line);
  at.output(at.dtype(1), lines.line);
}

/// Adds to the gradient of y those of mean (dm / n) and inverse_std (-ds inverse_std^3 (x - mean) / n).
void gradient(Gradient& at) {
  const auto axis = at.attributes.as<tenon_attributes_layer_norm>().axis;
  const Value x = at.input(0), mean = at.output(1), inverse_std = at.output(2);
  const double n = line_length(x.shape(), axis);
  Value dx;
  const auto add = [&dx](Value part) { dx = dx.present() ? ops::add(dx, part) : part; };
  if (at.dy(0).present()) {
    const std::vector<Value> parts =
        at.graph.apply(TENON_OP_LayerNormalizationGrad, {at.dy(0), x, at.input(1), mean, inverse_std}, at.attributes);
    dx = parts[0];
    if (at.needs(1)) at.set(1, parts[1]);
    if (at.needs(2)) at.set(2, parts[2]);
  }
  if (at.needs(0) && at.dy(1).present()) add(ops::mul(ops::expand(at.dy(1), x.shape()), 1 / n));
  if (at.needs(0) && at.dy(2).present()) add(ops::mul(ops::sub(x, mean), ops::mul(ops::mul(at.dy(2), ops::cube(inverse_std)), -1 / n)));
  if (dx.present()) at.set(0, dx);
}

}  // namespace

extern const OpRules rules_layer_norm, rules_layer_norm_grad;
const OpRules rules_layer_norm{
    "y = (x - mean) inverse_std scale + bias, with mean and inverse_std = 1 / sqrt(var + epsilon) over the dimensions from axis "
    "on; scale and bias have their shape.",
    infer,
    PrecisionClass::fp32_internal,
    per_element<8>,
    gradient,
    0b110};
const OpRules rules_layer_norm_grad{
    "With x' = (x - mean) inverse_std and g = dy scale: dx = inverse_std (g - mean(g) - x' mean(g x')), dscale = sum(dy x'), dbias = "
    "sum(dy) over the lines.",
    infer_gradient,
    PrecisionClass::fp32_internal,
    per_element<12>,
    nullptr,
    0b110};

}  // namespace graph

namespace ops {

Value layer_norm(Value x, Value scale, Value bias, std::int64_t axis, double epsilon) {
  tenon_attributes_layer_norm attributes{};
  attributes.axis = axis;
  attributes.epsilon = epsilon;
  return graph::apply_op(TENON_OP_LayerNormalization, {x, scale, bias}, Attributes::of(attributes));
}

Value group_norm(Value x, std::int64_t groups, Value scale, Value bias, double epsilon) {
  const Shape shape = x.shape();
  if (shape.rank() < 2) throw Error(fmt::format("group_norm: expected x of rank 2 or more, got '{}' {}", x.name(), shape.str()));
  const std::int64_t channels = shape[1];
  if (groups < 1 || channels % groups != 0) {
    throw Error(fmt::format("group_norm: {} do not divide the {} of '{}' {}", counted(groups, "group"), counted(channels, "channel"),
                            x.name(), shape.str()));
  }
  Shape sample, per_channel{channels};
  for (std::size_t i = 1; i < shape.rank(); ++i) sample.push_back(shape[i]);
  for (std::size_t i = 2; i < shape.rank(); ++i) per_channel.push_back(1);
  const auto spread = [&](const char* what, Value value) {
    if (value.shape() != Shape{channels}) {
      throw Error(fmt::format("group_norm: expected {} ({}), one per channel of '{}' {}, got '{}' {}", what, channels, x.name(),
                              shape.str(), value.name(), value.shape().str()));
    }
    return reshape(value, per_channel);
  };
  Value y = reshape(layer_norm(reshape(x, Shape{shape[0], groups, sample.count() / groups}), {}, {}, 2, epsilon), shape);
  if (scale.present()) y = mul(y, spread("scale", scale));
  if (bias.present()) y = add(y, spread("bias", bias));
  return y;
}

Value instance_norm(Value x, Value scale, Value bias, double epsilon) {
  if (x.shape().rank() < 3) throw Error(fmt::format("instance_norm: expected x (N, C, d...), got '{}' {}", x.name(), x.shape().str()));
  return group_norm(x, x.shape()[1], scale, bias, epsilon);
}

}  // namespace ops
}  // namespace tenon
