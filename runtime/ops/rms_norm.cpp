// SPDX-License-Identifier: Apache-2.0
// ops/rms_norm.cpp - divides each line by the root of its mean square.
#include "ops/line_norm.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(1, 2);
  const Lines lines = lines_of(at, 0);
  expect_shape(at, 0, 1, lines.line, "for a line");
  at.output(at.dtype(0), at.shape(0));
  at.output(at.dtype(0), lines.statistics);
}

/// dy, x, scale?, inverse_rms -> dx, dscale
void infer_gradient(Inference& at) {
  at.expect_inputs(2, 4);
  if (!at.has(3)) at.fail("expected inverse_rms, as returned by the forward op");
  at.expect_same_dtype(1, 0);
  at.expect_same_shape(1, 0);
  const Lines lines = lines_of(at, 1);
  expect_shape(at, 1, 2, lines.line, "for a line");
  expect_shape(at, 1, 3, lines.statistics, "for the lines");
  at.output(at.dtype(1), at.shape(1));
  at.output(at.dtype(1), lines.line);
}

/// Adds to the gradient of y that of inverse_rms: -ds inverse_rms^3 x / n.
void gradient(Gradient& at) {
  const auto axis = at.attributes.as<tenon_attributes_layer_norm>().axis;
  const Value x = at.input(0), inverse_rms = at.output(1);
  Value dx;
  if (at.dy(0).present()) {
    const std::vector<Value> parts = at.graph.apply(TENON_OP_RMSNormalizationGrad, {at.dy(0), x, at.input(1), inverse_rms}, at.attributes);
    dx = parts[0];
    if (at.needs(1)) at.set(1, parts[1]);
  }
  if (at.needs(0) && at.dy(1).present()) {
    const Value part = ops::mul(x, ops::mul(ops::mul(at.dy(1), ops::cube(inverse_rms)), -1 / line_length(x.shape(), axis)));
    dx = dx.present() ? ops::add(dx, part) : part;
  }
  if (dx.present()) at.set(0, dx);
}

}  // namespace

extern const OpRules rules_rms_norm, rules_rms_norm_grad;
const OpRules rules_rms_norm{
    "y = x inverse_rms scale, inverse_rms = 1 / sqrt(mean(x^2) + epsilon) over the dimensions from axis on; scale has their shape.",
    infer,
    PrecisionClass::fp32_internal,
    per_element<5>,
    gradient,
    0b10};
const OpRules rules_rms_norm_grad{
    "With x' = x inverse_rms and g = dy scale: dx = inverse_rms (g - x' mean(g x')), dscale = sum(dy x') over the lines.",
    infer_gradient,
    PrecisionClass::fp32_internal,
    per_element<8>,
    nullptr,
    0b10};

}  // namespace graph

namespace ops {

Value rms_norm(Value x, Value scale, std::int64_t axis, double epsilon) {
  tenon_attributes_layer_norm attributes{};
  attributes.axis = axis;
  attributes.epsilon = epsilon;
  return graph::apply_op(TENON_OP_RMSNormalization, {x, scale}, Attributes::of(attributes));
}

}  // namespace ops
}  // namespace tenon
