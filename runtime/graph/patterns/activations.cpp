// SPDX-License-Identifier: Apache-2.0
// graph/patterns/activations.cpp - activations of elements, and softmax.
#include <tenon/functions.h>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <vector>

#include "graph/patterns/records.h"

namespace tenon::graph::patterns {
namespace {

/// x is as large as the result.
bool fits(Match& match) {
  return match.shape(Role::x) == match.net.shape(match.result());
}

/// The one axis of a reduction that keeps it.
std::optional<double> single_axis(const Net&, const NodeInfo& node) {
  const auto& attributes = node.attributes.as<tenon_attributes_axes>();
  if (attributes.count != 1 || attributes.keepdims == 0) return std::nullopt;
  return static_cast<double>(attributes.axes[0]);
}

Pattern exp(const Pattern& x) {
  return op(TENON_OP_Exp, {x});
}

const Pattern& x() {
  static const Pattern pattern = any(Role::x);
  return pattern;
}

Pattern gelu() {
  const Pattern error = op(TENON_OP_Erf, {std::sqrt(0.5) * x()});
  return either({0.5 * x() * (1 + error), x() * (0.5 + 0.5 * error)});
}

Pattern gelu_tanh() {
  const double scale = std::sqrt(2 / std::numbers::pi), cubic = 0.044715;
  // the factor x may stand before the parentheses
  const Pattern inner = either({scale * x() + scale * cubic * pow(x(), 3), scale * x() * (1 + cubic * pow(x(), 2))});
  const Pattern bent = op(TENON_OP_Tanh, {inner});
  return either({0.5 * x() * (1 + bent), x() * (0.5 + 0.5 * bent)});
}

Pattern silu() {
  return either({x() * op(TENON_OP_Sigmoid, {x()}), x() / (1 + exp(-1 * x()))});
}

Pattern mish() {
  const Pattern softplus = either({op(TENON_OP_Softplus, {x()}), op(TENON_OP_Log, {1 + exp(x())}), op(TENON_OP_Log1p, {exp(x())})});
  return x() * op(TENON_OP_Tanh, {softplus});
}

Pattern softmax() {
  const Pattern exponential = exp(x() - op(TENON_OP_ReduceMax, {x()}, Role::axis, single_axis));
  return exponential / op(TENON_OP_ReduceSum, {exponential}, Role::axis, single_axis);
}

}  // namespace

const std::vector<Record>& activation_records() {
  static const std::vector<Record> records = {
      {"Gelu", "PyTorch, Keras and Paddle below opset 20: x/2 (1 + erf(x / sqrt 2)), grouped in several ways", gelu(), fits,
       [](const Match& match) { return ops::gelu(match.value(Role::x)); }},
      {"Gelu", "GPT-2 and its successors: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))", gelu_tanh(), fits,
       [](const Match& match) { return ops::gelu(match.value(Role::x), true); }},
      {"Silu", "PyTorch, Keras (swish)", silu(), fits, [](const Match& match) { return ops::silu(match.value(Role::x)); }},
      {"Mish", "PyTorch and Darknet exports below opset 18", mish(), fits,
       [](const Match& match) { return ops::mish(match.value(Role::x)); }},
      {"Softmax", "tf2onnx, for axes other than the last", softmax(), fits,
       [](const Match& match) { return ops::softmax(match.value(Role::x), static_cast<std::int64_t>(match.number(Role::axis))); }},
  };
  return records;
}

}  // namespace tenon::graph::patterns
