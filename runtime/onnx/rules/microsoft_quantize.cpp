// SPDX-License-Identifier: Apache-2.0
// onnx/rules/microsoft_quantize.cpp - the quantised ops of com.microsoft: their operands dequantised, the op, and its result quantised.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tenon/functions.h>

#include "onnx/node.h"
#include "onnx/rules.h"
#include "onnx/rules/block_quantized.h"
#include "onnx/rules/channels_last.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/microsoft_attention.h"
#include "onnx/rules/pools.h"
#include "onnx/rules/quantization.h"
#include "onnx/rules/recurrent.h"

namespace tenon::onnx {
namespace {

/// Operand i, whose scale and zero point are the two operands after it.
Value dequantized(Node& node, std::size_t i) {
  return dequantize(node.input(i), quantization_of(node, i + 1, i + 2));
}

/// Sets result 0, whose scale is operand `scale` and whose zero point is the one after it. Without a zero point it has dtype `otherwise`.
void set_quantized(Node& node, Value y, std::size_t scale, DType otherwise) {
  const DType dtype = node.has_input(scale + 1) ? node.dtype(scale + 1) : otherwise;
  node.output(0, quantize(y, quantization_of(node, scale, scale + 1), dtype));
}

template <Value (*f)(Value, Value)>
void qlinear_binary(Node& node) {
  set_quantized(node, f(dequantized(node, 0), dequantized(node, 3)), 6, node.dtype(0));
}

template <Value (*f)(Node& node, Value x)>
void qlinear_unary(Node& node) {
  set_quantized(node, f(node, dequantized(node, 0)), 3, node.dtype(0));
}

Value sigmoid_of(Node&, Value x) {
  return ops::sigmoid(x);
}

Value leaky_relu_of(Node& node, Value x) {
  return ops::leaky_relu(x, node.number("alpha", 0.01));
}

Value softmax_of(Node& node, Value x) {
  const bool rows_of_many = node.integer("opset") < 13;
  const Shape shape = x.shape();
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const std::int64_t axis = node.resolve_axis(node.integer("axis", rows_of_many ? 1 : -1), rank);
  // Before opset 13, all dimensions from the axis on are one row.
  return rows_of_many ? ops::reshape(ops::softmax(ops::flatten(x, axis), 1), shape) : ops::softmax(x, axis);
}

Value reduced_mean(Node& node, Value x) {
  return ops::reduce_mean(x, node.integers("axes"), node.flag("keepdims", true));
}

Value pooled(Node& node, Value x) {
  return node.flag("channels_last") ? to_channels_last(average_pool(node, to_channels_first(x))) : average_pool(node, x);
}

Value pooled_globally(Node& node, Value x) {
  const auto rank = static_cast<std::int64_t>(x.shape().rank());
  const std::int64_t first = node.flag("channels_last") ? 1 : 2;
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i + 2 < rank; ++i) axes.push_back(first + i);
  return axes.empty() ? x : ops::reduce_mean(x, axes, true);
}

void qlinear_concat(Node& node) {
  std::vector<Value> parts;
  for (std::size_t i = 2; i < node.input_count(); i += 3) parts.push_back(dequantized(node, i));
  if (parts.empty()) node.fail("expected values to concatenate, got none");
  const std::int64_t axis = node.resolve_axis(node.integer("axis"), static_cast<std::int64_t>(parts[0].shape().rank()));
  set_quantized(node, ops::concat(parts, axis), 0, node.dtype(2));
}

void qlinear_where(Node& node) {
  set_quantized(node, ops::where(node.input(0), dequantized(node, 1), dequantized(node, 4)), 7, node.dtype(1));
}

/// A scale or zero point of all elements, or of each column of a matrix.
Value per_column(Value parameter) {
  return parameter.present() && parameter.shape().count() == 1 ? ops::reshape(parameter, Shape{}) : parameter;
}

Quantization quantization_of_columns(Node& node, std::size_t scale, std::size_t zero_point) {
  return {per_column(node.input(scale)), per_column(node.optional_input(zero_point))};
}

Value with_bias(Node& node, Value y, std::size_t bias) {
  return node.has_input(bias) ? ops::add(y, cast_to(node.input(bias), y.dtype())) : y;
}

/// The product of 8-bit matrices, scaled, by integers. Absent if MatMulInteger does not take the operands.
Value scaled_product(Value a, const Quantization& a_by, Value b, const Quantization& b_by) {
  if (a_by.scale.dtype() != DType::f32 || b_by.scale.dtype() != DType::f32 || a_by.scale.shape().count() != 1) return {};
  const Value sums = multiply_integers(a, a_by.zero_point, b, b_by.zero_point);
  return sums.present() ? ops::mul(ops::cast(sums, DType::f32), ops::mul(a_by.scale, b_by.scale)) : Value();
}

void dynamic_quantize_matmul(Node& node) {
  const DynamicQuantization a = quantize_dynamically(node, node.input(0));
  const Value scaled = scaled_product(a.q, {a.scale, a.zero_point}, node.input(1), quantization_of_columns(node, 2, 3));
  if (scaled.present()) return node.output(0, with_bias(node, scaled, 4));
  const Value b = dequantize(node.input(1), quantization_of_columns(node, 2, 3));
  const Value y = ops::matmul(dequantize(a.q, {a.scale, a.zero_point}), b);
  node.output(0, with_bias(node, y, 4));
}

void matmul_integer_to_float(Node& node) {
  const Value scaled =
      scaled_product(node.input(0), quantization_of_columns(node, 2, 4), node.input(1), quantization_of_columns(node, 3, 5));
  if (scaled.present()) return node.output(0, with_bias(node, scaled, 6));
  const Value a = dequantize(node.input(0), quantization_of_columns(node, 2, 4));
  const Value b = dequantize(node.input(1), quantization_of_columns(node, 3, 5));
  node.output(0, cast_to(with_bias(node, ops::matmul(a, b), 6), node.dtype(2)));
}

/// alpha (A B + C), where the scale of C is that of the products.
void qgemm(Node& node) {
  const bool trans_b = node.flag("transB");
  const Value b = node.input(3);
  const Quantization a_by = quantization_of(node, 1, 2), b_by = quantization_along(node, 4, 5, b.shape(), trans_b ? 0 : 1);
  Value c = node.optional_input(6);
  if (c.present()) c = dequantize(c, {ops::mul(a_by.scale, per_column(node.input(4)))});
  const double alpha = node.number("alpha", 1);
  const Value y = ops::gemm(dequantize(node.input(0), a_by), dequantize(b, b_by), c, {node.flag("transA"), trans_b, alpha, alpha});
  if (node.has_input(7)) return set_quantized(node, y, 7, node.dtype(0));
  node.output(0, y);
}

void qattention(Node& node) {
  const Value x = dequantize(node.input(0), quantization_of(node, 3, 6)), w = node.input(1), bias = node.input(2);
  const Shape shape = w.shape();
  if (shape.rank() != 2 || shape[1] % 3 != 0) {
    node.fail(fmt::format("expected weights (size, sizes of queries, keys and values), got {}", shape.str()));
  }
  const Value projected = ops::matmul(x, dequantize(w, quantization_along(node, 4, 7, shape, 1)));
  const std::int64_t size = shape[1] / 3;
  self_attention(node, {ops::add(cast_to(projected, bias.dtype()), bias), {size, size, size}, 5, 8});
}

/// (q - zero_point) scale of known weights (D, I, n) of 8 bits as f32 (D, n, I). Scales and zero points are (D) or (D, n); an undefined
/// zero point is 0.
Tensor dequantized_transpose(const Tensor& q, const Tensor& scale, const Tensor& zero_point) {
  const std::int64_t directions = q.shape()[0], rows = q.shape()[1], columns = q.shape()[2];
  const std::vector<std::int32_t> elements = q.to(DType::i32).to_vector<std::int32_t>();
  const std::vector<float> scales = scale.to(DType::f32).to_vector<float>();
  const std::vector<float> zero_points = zero_point.defined() ? zero_point.to(DType::f32).to_vector<float>() : std::vector<float>();
  const auto parameter = [&](const std::vector<float>& list, std::int64_t d, std::int64_t column) {
    const auto size = static_cast<std::int64_t>(list.size());
    return list[static_cast<std::size_t>(size == 1 ? 0 : size == directions ? d : d * columns + column)];
  };
  Tensor result = Tensor::empty(DType::f32, {directions, columns, rows});
  auto* to = result.data<float>();
  constexpr std::int64_t block = 16;  // rows whose lines stay in the cache while columns advance
  for (std::int64_t d = 0; d < directions; ++d) {
    for (std::int64_t begin = 0; begin < rows; begin += block) {
      const std::int64_t end = std::min(rows, begin + block);
      for (std::int64_t column = 0; column < columns; ++column) {
        const float by = parameter(scales, d, column), zero = zero_points.empty() ? 0 : parameter(zero_points, d, column);
        for (std::int64_t row = begin; row < end; ++row) {
          const auto element = static_cast<float>(elements[static_cast<std::size_t>((d * rows + row) * columns + column)]);
          to[(d * columns + column) * rows + row] = (element - zero) * by;
        }
      }
    }
  }
  return result;
}

/// Weights (D, I, 4 H) of an LSTM as (D, 4 H, I); their scales and zero points are (D) or (D, 4 H).
Value lstm_weights(Node& node, std::size_t weights, std::size_t scale) {
  const Value q = node.input(weights);
  const Shape shape = q.shape();
  if (shape.rank() != 3) node.fail(fmt::format("expected weights (D, I, 4 H), got {}", shape.str()));
  const auto over_inputs = [&](Value parameter) {
    if (!parameter.present() || parameter.shape().count() == 1) return per_column(parameter);
    const Shape given = parameter.shape();
    const bool fits = given.rank() >= 1 && given.rank() <= 2 && given[0] == shape[0] && (given.rank() == 1 || given[1] == shape[2]);
    if (!fits) node.fail(fmt::format("expected scales and zero points (D) or (D, 4 H) of weights {}, got {}", shape.str(), given.str()));
    return ops::reshape(parameter, Shape{given[0], 1, given.rank() == 1 ? 1 : given[1]});
  };
  const Quantization by{over_inputs(node.input(scale)), over_inputs(node.optional_input(scale + 1))};
  // Known weights are dequantised once, not in each run.
  const Tensor known = node.known_if_constant(weights), known_scale = node.known_if_constant(scale);
  const Tensor known_zero_point = by.zero_point.present() ? node.known_if_constant(scale + 1) : Tensor();
  if (known.defined() && known_scale.defined() && (!by.zero_point.present() || known_zero_point.defined())) {
    return node.constant(dequantized_transpose(known, known_scale, known_zero_point));
  }
  return ops::transpose(dequantize(q, by), {0, 2, 1});
}

/// The LSTM of the dequantised weights. Its inputs and states stay floats, where ONNX Runtime rounds them to 8 bits in each step.
void dynamic_quantize_lstm(Node& node) {
  apply_recurrent(node, RecurrentCell::lstm,
                  {node.input(0), lstm_weights(node, 1, 8), lstm_weights(node, 2, 10), node.optional_input(3), node.optional_input(5),
                   node.optional_input(6), node.optional_input(7)});
}

}  // namespace

const std::vector<Rule>& microsoft_quantize_rules() {
  static const std::vector<Rule> rules = {
      {"QuantizeLinear", 1, quantize_linear},
      {"DequantizeLinear", 1, dequantize_linear},
      {"QLinearConv", 1, qlinear_conv},
      {"QLinearAdd", 1, qlinear_binary<ops::add>},
      {"QLinearMul", 1, qlinear_binary<ops::mul>},
      {"QLinearSigmoid", 1, qlinear_unary<sigmoid_of>},
      {"QLinearLeakyRelu", 1, qlinear_unary<leaky_relu_of>},
      {"QLinearSoftmax", 1, qlinear_unary<softmax_of>},
      {"QLinearReduceMean", 1, qlinear_unary<reduced_mean>},
      {"QLinearAveragePool", 1, qlinear_unary<pooled>},
      {"QLinearGlobalAveragePool", 1, qlinear_unary<pooled_globally>},
      {"QLinearConcat", 1, qlinear_concat},
      {"QLinearWhere", 1, qlinear_where},
      {"DynamicQuantizeMatMul", 1, dynamic_quantize_matmul},
      {"MatMulIntegerToFloat", 1, matmul_integer_to_float},
      {"MatMulNBits", 1, matmul_nbits},
      {"GatherBlockQuantized", 1, gather_block_quantized},
      {"QGemm", 1, qgemm},
      {"QAttention", 1, qattention},
      {"DynamicQuantizeLSTM", 1, dynamic_quantize_lstm},
  };
  return rules;
}

}  // namespace tenon::onnx
