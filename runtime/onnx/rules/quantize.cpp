// SPDX-License-Identifier: Apache-2.0
// onnx/rules/quantize.cpp - quantisation and quantised products of ai.onnx.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "onnx/node.h"
#include "onnx/rules.h"
#include "onnx/rules/channels_last.h"
#include "onnx/rules/dtypes.h"
#include "onnx/rules/quantization.h"
#include "onnx/rules/windows.h"

namespace tenon::onnx {
namespace {

bool is_integer(DType dtype) {
  return !is_floating(dtype) && dtype != DType::boolean && dtype != DType::c64 && dtype != DType::c128;
}

void expect_integer(Node& node, std::size_t i) {
  const DType dtype = node.dtype(i);
  if (!is_integer(dtype)) node.fail(fmt::format("operand {}: expected integers, got {}", i, name_of(dtype)));
}

/// A dtype that an attribute gives; 0 stands for `otherwise`.
DType chosen_dtype(Node& node, std::string_view attribute, DType otherwise) {
  return node.integer(attribute, 0) == 0 ? otherwise : node.element_type(attribute, otherwise);
}

/// The dtype of the result of QuantizeLinear: that of the zero point, or of the attribute, or u8.
DType quantized_dtype(Node& node) {
  const auto stored = static_cast<ElementType>(node.integer("output_dtype", 0));
  for (const ElementType narrow : {ElementType::u4, ElementType::i4, ElementType::u2, ElementType::i2}) {
    if (stored == narrow) {
      node.unsupported("expected a result of 8 or 16 bits, got one of 2 or 4 bits, which are read only from constants: quantise to int8");
    }
  }
  const DType dtype = node.has_input(2) ? node.dtype(2) : chosen_dtype(node, "output_dtype", DType::u8);
  if (dtype != DType::u8 && dtype != DType::i8 && dtype != DType::u16 && dtype != DType::i16) {
    node.unsupported(fmt::format("expected a result of int8, uint8, int16 or uint16, got {}: quantise to one of these", name_of(dtype)));
  }
  return dtype;
}

void dynamic_quantize_linear(Node& node) {
  const DynamicQuantization result = quantize_dynamically(node, node.input(0));
  node.output(0, result.q);
  node.output(1, result.scale);
  node.output(2, result.zero_point);
}

/// The sums of a convolution of 8-bit integers, by ConvInteger. Absent if it does not take the operands.
Value integer_convolution(Node& node, Value x, Value x_zero_point, Value w, Value w_zero_point) {
  const auto is_byte = [](Value q) { return q.dtype() == DType::i8 || q.dtype() == DType::u8; };
  if (!is_byte(x) || !is_byte(w) || w.shape().rank() == 0) return {};
  const ZeroPoint of_x = zero_point_of_lines(x_zero_point, x.dtype(), 1);
  const ZeroPoint of_w = zero_point_of_lines(w_zero_point, w.dtype(), w.shape()[0]);
  return of_x.fits && of_w.fits ? convolve_integers(node, x, w, of_x.value, of_w.value) : Value();
}

/// ConvInteger, or else Conv of x and w less their zero points, which are exact as floats.
void conv_integer(Node& node) {
  expect_integer(node, 0);
  expect_integer(node, 1);
  const Value x = node.input(0), w = node.input(1);
  const Shape shape = w.shape();
  if (shape.rank() < 3) node.fail(fmt::format("expected w (O, C, k...), got {}", shape.str()));
  const Value sums = integer_convolution(node, x, node.optional_input(2), w, node.optional_input(3));
  if (sums.present()) return node.output(0, sums);
  double terms = 1;
  for (std::size_t i = 1; i < shape.rank(); ++i) terms *= static_cast<double>(shape[i]);
  const DType dtype = product_dtype(terms, x.dtype(), node.has_input(2), w.dtype(), node.has_input(3));
  const Value x_zero_point = spread(node, node.optional_input(2), {}, 0, 0);
  const Value w_zero_point = spread(node, node.optional_input(3), shape, 0, 0);
  node.output(0, ops::cast(convolve(node, centred(x, x_zero_point, dtype), centred(w, w_zero_point, dtype)), DType::i32));
}

/// A scale or zero point of a matrix (..., M, N): one element, a list, or a shape that broadcasts. A list of M belongs to the rows, one of
/// N to the columns; `rows` decides for square matrices.
Value per_line(Value parameter, const Shape& matrix, bool rows) {
  if (!parameter.present()) return parameter;
  const Shape shape = parameter.shape();
  if (shape.count() == 1) return ops::reshape(parameter, Shape{});
  if (shape.rank() != 1 || matrix.rank() < 2) return parameter;
  const bool fits_rows = shape[0] == matrix[matrix.rank() - 2], fits_columns = shape[0] == matrix[matrix.rank() - 1];
  return fits_rows && (rows || !fits_columns) ? ops::reshape(parameter, Shape{shape[0], 1}) : parameter;
}

void matmul_integer(Node& node) {
  expect_integer(node, 0);
  expect_integer(node, 1);
  const Value a = node.input(0), b = node.input(1);
  const Shape shape = a.shape();
  if (shape.rank() == 0 || b.shape().rank() == 0) node.fail("expected matrices or vectors, got a scalar");
  const Value sums = multiply_integers(a, node.optional_input(2), b, node.optional_input(3));
  if (sums.present()) return node.output(0, sums);
  const auto terms = static_cast<double>(shape[shape.rank() - 1]);
  const DType dtype = product_dtype(terms, a.dtype(), node.has_input(2), b.dtype(), node.has_input(3));
  const Value a_zero_point = per_line(node.optional_input(2), shape, true);
  const Value b_zero_point = per_line(node.optional_input(3), b.shape(), false);
  node.output(0, ops::cast(ops::matmul(centred(a, a_zero_point, dtype), centred(b, b_zero_point, dtype)), DType::i32));
}

/// A scale and the zero point after it.
Quantization parameters_at(Node& node, std::size_t scale) {
  return {node.input(scale), node.optional_input(scale + 1)};
}

/// QLinearMatMul. Absent if the op does not take the operands.
Value requantized_product(Node& node, Value a, Value b, DType to) {
  if (a.shape().rank() == 0 || b.shape().rank() == 0) return {};
  const std::int64_t columns = b.shape().rank() == 1 ? 1 : b.shape()[b.shape().rank() - 1];
  const auto a_by = quantization_of_lines(node, parameters_at(node, 1), a.dtype(), 1);
  const auto b_by = quantization_of_lines(node, parameters_at(node, 4), b.dtype(), columns);
  const auto y_by = quantization_of_lines(node, parameters_at(node, 6), to, 1);
  if (!a_by || !b_by || !y_by) return {};
  return ops::qlinear_matmul({a, a_by->scale, a_by->zero_point}, {b, b_by->scale, b_by->zero_point}, y_by->scale, y_by->zero_point);
}

void qlinear_matmul(Node& node) {
  expect_integer(node, 0);
  expect_integer(node, 3);
  const Value a = node.input(0), b = node.input(3);
  const DType to = node.has_input(7) ? node.dtype(7) : a.dtype();
  const Value requantized = requantized_product(node, a, b, to);
  if (requantized.present()) return node.output(0, requantized);
  const auto by = [&](std::size_t scale, const Shape& matrix, bool rows) {
    return Quantization{per_line(node.input(scale), matrix, rows), per_line(node.optional_input(scale + 1), matrix, rows)};
  };
  const Value y = ops::matmul(dequantize(a, by(1, a.shape(), true)), dequantize(b, by(4, b.shape(), false)));
  node.output(0, quantize(y, by(6, y.shape(), false), to));
}

/// QLinearConv. Absent if the op does not take the operands.
Value requantized_convolution(Node& node, Value x, Value w, Value bias, DType to) {
  if (w.shape().rank() < 3 || (bias.present() && (bias.dtype() != DType::i32 || bias.shape() != Shape{w.shape()[0]}))) return {};
  const auto x_by = quantization_of_lines(node, parameters_at(node, 1), x.dtype(), 1);
  const auto w_by = quantization_of_lines(node, parameters_at(node, 4), w.dtype(), w.shape()[0]);
  const auto y_by = quantization_of_lines(node, parameters_at(node, 6), to, 1);
  if (!x_by || !w_by || !y_by) return {};
  return convolve_requantized(node, {x, x_by->scale, x_by->zero_point}, {w, w_by->scale, w_by->zero_point}, y_by->scale, y_by->zero_point,
                              bias);
}

}  // namespace

void quantize_linear(Node& node) {
  const Value x = node.input(0), scale = node.input(1);
  const DType to = quantized_dtype(node);
  // The division of integers by integers is that of their real values.
  const DType given = chosen_dtype(node, "precision", scale.dtype());
  const DType precision = is_floating(given) ? given : DType::f64;
  const std::int64_t axis = node.integer("axis", 1), block_size = node.integer("block_size", 0);
  const Quantization by{spread(node, scale, x.shape(), axis, block_size),
                        spread(node, node.optional_input(2), x.shape(), axis, block_size)};
  node.output(0, quantize(cast_to(x, precision), by, to));
}

void dequantize_linear(Node& node) {
  expect_integer(node, 0);
  const Value x = node.input(0), scale = node.input(1);
  if (!is_floating(scale.dtype())) node.fail(fmt::format("expected a floating scale, got {}", name_of(scale.dtype())));
  const std::int64_t axis = node.integer("axis", 1), block_size = node.integer("block_size", 0);
  const Quantization by{spread(node, scale, x.shape(), axis, block_size),
                        spread(node, node.optional_input(2), x.shape(), axis, block_size)};
  node.output(0, cast_to(dequantize(x, by), chosen_dtype(node, "output_dtype", scale.dtype())));
}

void qlinear_conv(Node& node) {
  expect_integer(node, 0);
  expect_integer(node, 3);
  Value x = node.input(0);
  const Value w = node.input(3);
  const bool channels_last = node.flag("channels_last");
  if (channels_last) x = to_channels_first(x);
  const DType to = node.has_input(7) ? node.dtype(7) : node.dtype(0);
  Value bias = node.optional_input(8);
  const auto finish = [&](Value y) { node.output(0, channels_last ? to_channels_last(y) : y); };
  const Value requantized = requantized_convolution(node, x, w, bias, to);
  if (requantized.present()) return finish(requantized);
  const Quantization x_by = quantization_of(node, 1, 2), y_by = quantization_of(node, 6, 7);
  const Quantization w_by = quantization_along(node, 4, 5, w.shape(), 0);
  if (bias.present()) {
    // It is quantised with the scale of the products and the zero point 0.
    const Shape scales = node.shape(4);
    const Value w_scale = scales.count() == 1 ? w_by.scale : ops::reshape(w_by.scale, Shape{scales.count()});
    bias = dequantize(bias, {ops::mul(cast_to(x_by.scale, DType::f32), cast_to(w_scale, DType::f32))});
  }
  const Value y = convolve(node, dequantize(x, x_by), dequantize(w, w_by), bias);
  finish(quantize(y, y_by, to));
}

const std::vector<Rule>& quantize_rules() {
  // The attributes and granularities that later versions added are absent in models of earlier ones.
  static const std::vector<Rule> rules = {
      {"QuantizeLinear", 10, quantize_linear},
      {"DequantizeLinear", 10, dequantize_linear},
      {"DynamicQuantizeLinear", 11, dynamic_quantize_linear},
      {"QLinearConv", 10, qlinear_conv},
      {"QLinearMatMul", 10, qlinear_matmul},
      {"ConvInteger", 10, conv_integer},
      {"MatMulInteger", 10, matmul_integer},
  };
  return rules;
}

}  // namespace tenon::onnx
