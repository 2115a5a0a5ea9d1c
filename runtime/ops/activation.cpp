// SPDX-License-Identifier: Apache-2.0
// ops/activation.cpp - elementwise activations other than relu, sigmoid and tanh. Gradients take x, since y does not determine the branch.
#include <fmt/format.h>

#include <cmath>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "ops/pointwise.h"

namespace tenon {
namespace graph {
namespace {

void infer_alpha(Inference& at) {
  infer_floating(at);
  const double alpha = at.attributes.as<tenon_attributes_alpha>().alpha;
  if (!std::isfinite(alpha)) at.fail(fmt::format("expected a finite alpha, got {}", alpha));
}

void infer_gelu(Inference& at) {
  infer_floating(at);
  at.expect_flag(at.attributes.as<tenon_attributes_gelu>().approximate_tanh, "approximate_tanh");
}

Value constant(Gradient& at, double value) {
  return scalar(at.graph, at.dy().dtype(), value);
}

void leaky_relu_gradient(Gradient& at) {
  const double alpha = at.attributes.as<tenon_attributes_alpha>().alpha;
  at.set(0, ops::where(ops::greater(at.input(0), constant(at, 0)), at.dy(), ops::mul(at.dy(), alpha)));
}

/// alpha e^x below 0; y + alpha would cancel the digits of a small e^x.
void elu_gradient(Gradient& at) {
  const double alpha = at.attributes.as<tenon_attributes_alpha>().alpha;
  const Value x = at.input(0);
  at.set(0, ops::where(ops::greater(x, constant(at, 0)), at.dy(), ops::mul(ops::mul(at.dy(), alpha), ops::exp(x))));
}

void softplus_gradient(Gradient& at) {
  at.set(0, ops::mul(at.dy(), ops::sigmoid(at.input(0))));
}

/// With t = tanh(softplus(x)): t + x (1 - t^2) sigmoid(x).
void mish_gradient(Gradient& at) {
  const Value x = at.input(0), one = constant(at, 1);
  const Value t = ops::tanh(ops::softplus(x));
  const Value slope = ops::mul(ops::sub(one, t), ops::add(one, t));
  at.set(0, ops::mul(at.dy(), ops::add(t, ops::mul(ops::mul(x, slope), ops::sigmoid(x)))));
}

/// d(x s(u)) = s(u) + x s(u) s(-u) u', where s is the sigmoid and s(-u) = 1 - s(u) without cancellation.
Value gated(Value x, Value u, Value du) {
  const Value s = ops::sigmoid(u);
  const Value rest = ops::mul(ops::sigmoid(ops::neg(u)), du);
  return ops::mul(s, ops::add(ops::mul(x, rest), 1));
}

void silu_gradient(Gradient& at) {
  const Value x = at.input(0);
  at.set(0, ops::mul(at.dy(), gated(x, x, constant(at, 1))));
}

/// Phi(x) + x phi(x). Below -1, where 1 + erf cancels, Phi is y / x.
Value gelu_slope(Gradient& at) {
  const Value x = at.input(0);
  const double half_root = std::sqrt(0.5), density = std::sqrt(0.5 / std::acos(-1.0));
  const Value near = ops::mul(ops::add(ops::erf(ops::mul(x, half_root)), 1), 0.5);
  const Value phi = ops::where(ops::less(x, constant(at, -1)), ops::div(at.output(0), x), near);
  return ops::add(phi, ops::mul(ops::mul(x, density), ops::exp(ops::mul(ops::square(x), -0.5))));
}

/// x (1 + tanh v) / 2 is x s(2 v): v as in the op. Beyond 30 the sigmoid is 0 or 1, so x is clipped before the cube overflows.
Value gelu_tanh_slope(Gradient& at) {
  const Value x = at.input(0), inner = ops::clip(x, -30, 30);
  const double twice = 2 * std::sqrt(2 / std::acos(-1.0)), cubic = 0.044715;
  const Value squared = ops::square(inner);
  const Value u = ops::mul(ops::mul(inner, ops::add(ops::mul(squared, cubic), 1)), twice);
  const Value du = ops::mul(ops::add(ops::mul(squared, 3 * cubic), 1), twice);
  return gated(x, u, du);
}

void gelu_gradient(Gradient& at) {
  const bool approximate_tanh = at.attributes.as<tenon_attributes_gelu>().approximate_tanh == 1;
  at.set(0, ops::mul(at.dy(), approximate_tanh ? gelu_tanh_slope(at) : gelu_slope(at)));
}

}  // namespace

extern const OpRules rules_leaky_relu, rules_elu, rules_softplus, rules_mish, rules_gelu, rules_silu;
const OpRules rules_leaky_relu{"y = x where x > 0, else alpha x. The derivative at 0 is alpha.", infer_alpha, PrecisionClass::inherits,
                               per_element<1>, leaky_relu_gradient};
const OpRules rules_elu{"y = x where x > 0, else alpha (e^x - 1). The derivative at 0 is alpha.", infer_alpha, PrecisionClass::inherits,
                        per_element<1>, elu_gradient};
const OpRules rules_softplus{"y = log(1 + e^x) without overflow.", infer_floating, PrecisionClass::fp32, per_element<1>, softplus_gradient};
const OpRules rules_mish{"y = x tanh(softplus(x)); 0, its limit, at minus infinity.", infer_floating, PrecisionClass::inherits,
                         per_element<1>, mish_gradient};
const OpRules rules_gelu{
    "y = x Phi(x), Phi the normal distribution; with approximate_tanh x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Its limit 0 at minus "
    "infinity.",
    infer_gelu, PrecisionClass::inherits, per_element<1>, gelu_gradient};
const OpRules rules_silu{"y = x sigmoid(x); 0, its limit, at minus infinity.", infer_floating, PrecisionClass::inherits, per_element<1>,
                         silu_gradient};

}  // namespace graph

namespace ops {
namespace {
Attributes with_alpha(double alpha) {
  tenon_attributes_alpha attributes{};
  attributes.alpha = alpha;
  return Attributes::of(attributes);
}
}  // namespace

Value relu6(Value x) {
  return clip(relu(x), 0, 6);  // relu first, so that the derivative at 0 is 0
}
Value leaky_relu(Value x, double alpha) {
  return graph::apply_op(TENON_OP_LeakyRelu, {x}, with_alpha(alpha));
}
Value elu(Value x, double alpha) {
  return graph::apply_op(TENON_OP_Elu, {x}, with_alpha(alpha));
}
Value gelu(Value x, bool approximate_tanh) {
  tenon_attributes_gelu attributes{};
  attributes.approximate_tanh = approximate_tanh ? 1 : 0;
  return graph::apply_op(TENON_OP_Gelu, {x}, Attributes::of(attributes));
}
Value selu(Value x) {
  constexpr double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
  return mul(elu(x, alpha), scale);
}
Value hard_swish(Value x) {
  return mul(mul(x, relu6(add(x, 3))), 1.0 / 6);
}
Value prelu(Value x, Value slope) {
  return where(greater(x, graph::scalar(x.graph(), x.dtype(), 0)), x, mul(slope, x));
}
Value glu(Value x, std::int64_t axis) {
  const std::int64_t rank = static_cast<std::int64_t>(x.shape().rank()), counted = axis < 0 ? axis + rank : axis;
  if (counted < 0 || counted >= rank || x.shape()[static_cast<std::size_t>(counted)] % 2 != 0) {
    throw Error(fmt::format("glu: expected an axis of even size, got axis {} of '{}' {}", axis, x.name(), x.shape().str()));
  }
  const std::int64_t half = x.shape()[static_cast<std::size_t>(counted)] / 2;
  return mul(slice(x, counted, 0, half), sigmoid(slice(x, counted, half, 2 * half)));
}

}  // namespace ops
}  // namespace tenon
