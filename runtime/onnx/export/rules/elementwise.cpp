// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/elementwise.cpp - ops that compute each element by itself.
#include <cmath>
#include <limits>
#include <numbers>

#include "onnx/export/rules.h"
#include "onnx/model_file.h"

namespace tenon::onnx::exporting {
namespace {

/// ONNX orders numbers only; bools are compared as 0 and 1.
void order(Node& node) {
  std::vector<Term> operands = node.inputs();
  for (Term& operand : operands) {
    if (operand.dtype == DType::boolean) operand = node.cast(operand, DType::i32);
  }
  node.output(0, node.op(op_name(node.info().op), operands, {}, DType::boolean));
}

void rsqrt(Node& node) {
  node.output(0, node.op("Reciprocal", {node.op("Sqrt", {node.wide_input(0)})}));
}

/// A bound that clips elements of a dtype: none if it is infinite or, for integers, beyond the dtype's range.
Term bound(Node& node, double value, DType dtype) {
  if (std::isinf(value)) return {};
  if (is_floating(dtype)) return node.scalar(dtype, value);
  const double limit = dtype == DType::i32 ? 0x1p31 : 0x1p63;
  if (value < -limit || value >= limit) return {};
  const auto whole = static_cast<std::int64_t>(value);
  return node.constant(dtype == DType::i32 ? Tensor::scalar(static_cast<std::int32_t>(whole)) : Tensor::scalar(whole));
}

void clip(Node& node) {
  const auto& bounds = node.attributes<tenon_attributes_clip>();
  const Term x = node.input(0);
  const bool floating = is_floating(x.dtype);
  const Term low = bound(node, floating ? bounds.low : std::ceil(bounds.low), x.dtype);
  const Term high = bound(node, floating ? bounds.high : std::floor(bounds.high), x.dtype);
  node.output(0, node.op("Clip", {x, low, high}));
}

/// 2 t / (1 - t) with t = tanh(x / 2) is e^x - 1, accurate where x is small.
void expm1(Node& node) {
  const Term x = node.wide_input(0), one = node.scalar(x.dtype, 1);
  const Term t = node.op("Tanh", {node.op("Mul", {x, node.scalar(x.dtype, 0.5)})});
  const Term small = node.op("Div", {node.op("Add", {t, t}), node.op("Sub", {one, t})});
  const Term large = node.op("Sub", {node.op("Exp", {x}), one});
  const Term is_small = node.op("Less", {node.op("Abs", {x}), one}, {}, DType::boolean);
  node.output(0, node.op("Where", {is_small, small, large}, {}, x.dtype));
}

/// With u = 1 + x as rounded and d = u - 1: x if d is 0, log(u) if d is x, which also holds for infinity, else log(u) x / d.
/// u is x - (-1), since a reader may take log(1 + x) for log1p(x), as Tenon does, and then multiply that by x / d.
/// Source  Kahan; Higham: Accuracy and Stability of Numerical Algorithms (2002), problem 1.5.
void log1p(Node& node) {
  const Term x = node.wide_input(0), one = node.scalar(x.dtype, 1);
  const Term u = node.op("Sub", {x, node.scalar(x.dtype, -1)}), d = node.op("Sub", {u, one}), log = node.op("Log", {u});
  const auto equal = [&](const Term& a, const Term& b) { return node.op("Equal", {a, b}, {}, DType::boolean); };
  const Term scaled = node.op("Mul", {log, node.op("Div", {x, d})});
  const Term rest = node.op("Where", {equal(d, x), log, scaled}, {}, x.dtype);
  node.output(0, node.op("Where", {equal(d, node.scalar(x.dtype, 0)), x, rest}, {}, x.dtype));
}

void log2(Node& node) {
  const Term x = node.wide_input(0);
  node.output(0, node.op("Div", {node.op("Log", {x}), node.scalar(x.dtype, std::numbers::ln2)}));
}

void with_alpha(Node& node) {
  const double alpha = node.attributes<tenon_attributes_alpha>().alpha;
  node.output(0, node.op(op_name(node.info().op), {node.input(0)}, {number("alpha", alpha)}));
}

void mish(Node& node) {
  if (node.opset() >= 18) return apply_same_op(node);
  const Term x = node.wide_input(0);
  node.output(0, node.op("Mul", {x, node.op("Tanh", {node.op("Softplus", {x})})}));
}

void silu(Node& node) {
  const Term x = node.wide_input(0);
  node.output(0, node.op("Mul", {x, node.op("Sigmoid", {x})}));
}

/// Before opset 20 in the forms in which exporters write it.
void gelu(Node& node) {
  const bool by_tanh = node.attributes<tenon_attributes_gelu>().approximate_tanh != 0;
  if (node.opset() >= 20) {
    node.output(0, node.op("Gelu", {node.input(0)}, {text("approximate", by_tanh ? "tanh" : "none")}));
    return;
  }
  const Term x = node.wide_input(0);
  const auto scalar = [&](double value) { return node.scalar(x.dtype, value); };
  Term probability;
  if (by_tanh) {
    const Term cubed = node.op("Mul", {node.op("Mul", {node.op("Mul", {x, x}), x}), scalar(0.044715)});
    probability = node.op("Tanh", {node.op("Mul", {node.op("Add", {x, cubed}), scalar(std::sqrt(2 / std::numbers::pi))})});
  } else {
    probability = node.op("Erf", {node.op("Div", {x, scalar(std::numbers::sqrt2)})});
  }
  const Term product = node.op("Mul", {x, node.op("Add", {probability, scalar(1)})});
  node.output(0, node.op("Mul", {product, scalar(0.5)}));
}

void cast(Node& node) {
  node.output(0, node.op("Cast", {node.input(0)}, {integer("to", static_cast<std::int64_t>(element_type_of(node.output_dtype())))},
                         node.output_dtype()));
}

}  // namespace

const std::vector<Rule>& elementwise_rules() {
  static const std::vector<Rule> rules = {
      {TENON_OP_Add, apply_same_op},
      {TENON_OP_Sub, apply_same_op},
      {TENON_OP_Mul, apply_same_op},
      {TENON_OP_Div, apply_same_op},
      {TENON_OP_Pow, apply_same_op},
      {TENON_OP_Max, apply_same_op},
      {TENON_OP_Min, apply_same_op},
      {TENON_OP_Equal, apply_same_op},
      {TENON_OP_Less, order},
      {TENON_OP_LessOrEqual, order},
      {TENON_OP_Greater, order},
      {TENON_OP_GreaterOrEqual, order},
      {TENON_OP_And, apply_same_op},
      {TENON_OP_Or, apply_same_op},
      {TENON_OP_Xor, apply_same_op},
      {TENON_OP_Not, apply_same_op},
      {TENON_OP_IsNaN, apply_same_op},
      {TENON_OP_IsInf, apply_same_op},
      {TENON_OP_Where, apply_same_op},
      {TENON_OP_Neg, apply_same_op},
      {TENON_OP_Relu, apply_same_op},
      {TENON_OP_Sigmoid, apply_same_op},
      {TENON_OP_Tanh, apply_same_op},
      {TENON_OP_Abs, apply_same_op},
      {TENON_OP_Sign, apply_same_op},
      {TENON_OP_Ceil, apply_same_op},
      {TENON_OP_Floor, apply_same_op},
      {TENON_OP_Round, apply_same_op},
      {TENON_OP_Sqrt, apply_same_op},
      {TENON_OP_Rsqrt, rsqrt},
      {TENON_OP_Reciprocal, apply_same_op},
      {TENON_OP_Clip, clip},
      {TENON_OP_Exp, apply_same_op},
      {TENON_OP_Expm1, expm1},
      {TENON_OP_Log, apply_same_op},
      {TENON_OP_Log2, log2},
      {TENON_OP_Log1p, log1p},
      {TENON_OP_Erf, apply_same_op},
      {TENON_OP_Sin, apply_same_op},
      {TENON_OP_Cos, apply_same_op},
      {TENON_OP_Atan, apply_same_op},
      {TENON_OP_LeakyRelu, with_alpha},
      {TENON_OP_Elu, with_alpha},
      {TENON_OP_Softplus, apply_same_op},
      {TENON_OP_Mish, mish},
      {TENON_OP_Gelu, gelu},
      {TENON_OP_Silu, silu},
      {TENON_OP_Cast, cast},
  };
  return rules;
}

}  // namespace tenon::onnx::exporting
