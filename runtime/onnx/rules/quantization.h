// SPDX-License-Identifier: Apache-2.0
// onnx/rules/quantization.h - quantised values: what they stand for, how they are made, and their products. The ops of the same names
// compute them where they give exactly what ONNX specifies; elsewhere Cast, Sub, Mul and Div, Round, Add, Clip, Cast stand for them.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/functions.h>

#include "onnx/node.h"

namespace tenon::onnx {

/// The integer q stands for (q - zero_point) scale. Both broadcast with q; an absent zero point is 0.
struct Quantization {
  Value scale;
  Value zero_point = {};
};

/// Operands of a node as scale and zero point of all elements of a value. The zero point may be absent. Errors: more than one element.
Quantization quantization_of(Node& node, std::size_t scale, std::size_t zero_point);
/// The same for one scale per index of `axis` of a value of this shape, or one for all.
Quantization quantization_along(Node& node, std::size_t scale, std::size_t zero_point, const Shape& shape, std::int64_t axis);
/// A scale or zero point in a shape that broadcasts with values of `shape`: one element for all of them, (n) for the n indices of `axis`,
/// or, with a block size above 0, one for each block of that many neighbours along `axis`. An absent one stays absent.
Value spread(Node& node, Value parameter, const Shape& shape, std::int64_t axis, std::int64_t block_size);

/// (q - zero_point) scale, in f32, or f64 if the scale is f64.
Value dequantize(Value q, const Quantization& by);
/// round(x / scale) + zero_point, saturated, as u8, i8, u16 or i16. Halves are rounded to even; the quotient has the dtype of x.
Value quantize(Value x, const Quantization& by, DType to);

/// A value with the quantisation that was chosen for its elements.
struct DynamicQuantization {
  Value q;  ///< u8
  Value scale, zero_point;
};
/// DynamicQuantizeLinear of x: the range of x and 0 as 0 to 255.
DynamicQuantization quantize_dynamically(Node& node, Value x);

/// A zero point of i8 or u8 as the integer products take it: a scalar, a list of `lines`, or absent for 0.
struct ZeroPoint {
  Value value;
  bool fits = true;  ///< false: it has another dtype than its operand, or another shape
};
ZeroPoint zero_point_of_lines(Value zero_point, DType operand, std::int64_t lines);

/// The matrix product of a - a_zero_point and b - b_zero_point in i32, exact. Absent if MatMulInteger does not take the operands.
Value multiply_integers(Value a, Value a_zero_point, Value b, Value b_zero_point);
/// Scale and zero point of integers of i8 or u8 as QLinearMatMul and QLinearConv take them: a scalar, or a list of `lines`; an absent zero
/// point is made 0 of the dtype of the integers. Absent if these ops do not take them.
std::optional<Quantization> quantization_of_lines(Node& node, const Quantization& by, DType integers, std::int64_t lines);

/// The smallest of f32 and f64 that is exact for sums of `terms` products of two operands. `zero_point`: whether the operand has one.
DType product_dtype(double terms, DType a, bool a_zero_point, DType b, bool b_zero_point);
/// q - zero_point in a floating dtype.
Value centred(Value q, Value zero_point, DType dtype);

// Rules that com.microsoft has too.
void quantize_linear(Node& node);
void dequantize_linear(Node& node);
void qlinear_conv(Node& node);

}  // namespace tenon::onnx
