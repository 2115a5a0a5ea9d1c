// SPDX-License-Identifier: Apache-2.0
// onnx/rules/activation.cpp - activations of elements.
#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "onnx/rules.h"
#include "onnx/rules/broadcast.h"
#include "onnx/rules/numbers.h"

namespace tenon::onnx {
namespace {

/// From opset 14 on also of integers.
Value relu(Value x) {
  return is_floating(x.dtype()) ? ops::relu(x) : maximum(x, constant_like(x, 0));
}

/// alpha elu(x / alpha)
void celu(Node& node) {
  const double alpha = node.number("alpha", 1);
  const Value x = node.input(0);
  node.output(0, alpha == 1 ? ops::elu(x) : ops::mul(ops::elu(ops::div(x, alpha)), alpha));
}

/// gamma elu(x, alpha)
void selu(Node& node, double alpha, double gamma) {
  node.output(0, ops::mul(ops::elu(node.input(0), node.number("alpha", alpha)), node.number("gamma", gamma)));
}

void hard_sigmoid(Node& node) {
  const Value line = ops::add(ops::mul(node.input(0), node.number("alpha", 0.2F)), node.number("beta", 0.5));
  node.output(0, ops::clip(line, 0, 1));
}

Value softsign(Value x) {
  return ops::div(x, ops::add(ops::abs(x), 1));
}

void gelu(Node& node) {
  const std::string_view approximate = node.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    node.fail(fmt::format("attribute 'approximate': expected none or tanh, got {}", approximate));
  node.output(0, ops::gelu(node.input(0), approximate == "tanh"));
}

/// x sigmoid(alpha x)
Value swish(Node& node) {
  const Value x = node.input(0);
  const double alpha = node.number("alpha", 1);
  return alpha == 1 ? ops::silu(x) : ops::mul(x, ops::sigmoid(ops::mul(x, alpha)));
}

/// swish(a) b, of one shape
void swiglu(Node& node) {
  const OperandPair operands = operand_pair(node);
  if (operands.a.shape() != operands.b.shape())
    node.fail(fmt::format("expected operands of one shape, got {} and {}", operands.a.shape().str(), operands.b.shape().str()));
  node.output(0, ops::mul(swish(node), operands.b));
}

void thresholded_relu(Node& node) {
  const Value x = node.input(0);
  node.output(0, ops::where(ops::greater(x, constant_like(x, node.number("alpha", 1))), x, constant_like(x, 0)));
}

/// x + bias below -lambd, x - bias above lambd, else 0. Integers are computed in f64 and truncated.
void shrink(Node& node) {
  const double bias = node.number("bias", 0), lambd = node.number("lambd", 0.5);
  const Value operand = node.input(0), x = cast_to(operand, floating_dtype(operand.dtype()));
  const Value above = ops::where(ops::greater(x, constant_like(x, lambd)), ops::sub(x, bias), constant_like(x, 0));
  const Value y = ops::where(ops::less(x, constant_like(x, -lambd)), ops::add(x, bias), above);
  node.output(0, cast_to(y, operand.dtype()));
}

/// The slope so that it broadcasts to x. Before opset 7 one per channel; later models that still have that form are accepted if one
/// dimension of x only has its size, as the reference implementation of ONNX does.
Value slope_for(Node& node, Value x, Value slope) {
  const Shape to = x.shape();
  const auto rank = static_cast<std::int64_t>(to.rank());
  if (slope.shape().count() == 1) return ops::reshape(slope, Shape{});
  const bool is_list = slope.shape().rank() == 1;
  if (node.opset() < 7 && is_list && rank >= 2 && to[1] == slope.shape()[0]) return aligned(slope, 1, rank);
  if (broadcasts_to(slope.shape(), to)) return slope;
  if (is_list) {
    const auto has_size = [&](std::int64_t size) { return size == slope.shape()[0]; };
    if (std::count_if(to.begin(), to.end(), has_size) == 1)
      return aligned(slope, std::find_if(to.begin(), to.end(), has_size) - to.begin(), rank);
  }
  node.fail(fmt::format("expected a slope that broadcasts to x {}, got {}", to.str(), slope.shape().str()));
}

/// x where it is positive, else slope x. Integers wrap around; those without a sign are the result.
void prelu(Node& node) {
  const OperandPair operands = operand_pair(node);
  const Value x = operands.a, slope = slope_for(node, x, operands.b);
  if (is_floating(x.dtype())) return node.output(0, ops::prelu(x, slope));
  if (is_unsigned(x.dtype())) return node.output(0, node.operand(0));
  node.output(0, ops::where(ops::less(x, constant_like(x, 0)), wrapping<ops::mul>(x, slope), x));
}

}  // namespace

const std::vector<Rule>& activation_rules() {
  static const std::vector<Rule> rules = {
      {"Relu", 1, unary<relu>},
      {"LeakyRelu", 1, [](Node& node) { node.output(0, ops::leaky_relu(node.input(0), node.number("alpha", 0.01F))); }},
      {"PRelu", 1, prelu},
      {"ThresholdedRelu", 1, thresholded_relu},
      {"Elu", 1, [](Node& node) { node.output(0, ops::elu(node.input(0), node.number("alpha", 1))); }},
      {"Celu", 12, celu},
      {"Selu", 1, [](Node& node) { selu(node, 1.6732F, 1.0507F); }},
      {"Selu", 6, [](Node& node) { selu(node, 1.67326319217681884765625, 1.05070102214813232421875); }},
      {"Sigmoid", 1, unary<ops::sigmoid>},
      {"HardSigmoid", 1, hard_sigmoid},
      {"HardSwish", 14, unary<ops::hard_swish>},
      {"Tanh", 1, unary<ops::tanh>},
      {"Softplus", 1, unary<ops::softplus>},
      {"Softsign", 1, unary<softsign>},
      {"Mish", 18, unary<ops::mish>},
      {"Gelu", 20, gelu},
      {"Swish", 24, [](Node& node) { node.output(0, swish(node)); }},
      {"SwiGLU", 28, swiglu},
      {"Shrink", 9, shrink},
  };
  return rules;
}

}  // namespace tenon::onnx
