// SPDX-License-Identifier: Apache-2.0
// ops/quantize.cpp - floats as integers of 8 or 16 bits, and back.
#include <fmt/format.h>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

bool is_quantized(DType dtype) {
  return dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i16 || dtype == DType::u16;
}

/// Checks that operand i is absent or broadcasts to operand 0.
void expect_broadcast(Inference& at, std::size_t i) {
  if (!at.has(i)) return;
  if (at.broadcast(0, i) != at.shape(0)) at.fail(fmt::format("expected a shape that broadcasts to {}, got {}", at.str(0), at.str(i)));
}

void infer_quantize(Inference& at) {
  at.expect_inputs(2, 3);
  at.expect_floating(0);
  at.expect_same_dtype(0, 1);
  const auto to = static_cast<DType>(at.attributes.as<tenon_attributes_cast>().to);
  if (!is_quantized(to)) {
    at.fail(fmt::format("expected to quantise {} to i8, u8, i16 or u16, got the dtype {}", at.str(0), name_of(to)));
  }
  expect_broadcast(at, 1);
  expect_broadcast(at, 2);
  if (at.has(2) && at.dtype(2) != to)
    at.fail(fmt::format("expected a zero point of the result's dtype {}, got {}", name_of(to), at.str(2)));
  at.output(to, at.shape(0));
}

void infer_dequantize(Inference& at) {
  at.expect_inputs(2, 3);
  if (!is_quantized(at.dtype(0)) && at.dtype(0) != DType::i32) {
    at.fail(fmt::format("expected integers of i8, u8, i16, u16 or i32, got {}", at.str(0)));
  }
  at.expect_floating(1);
  expect_broadcast(at, 1);
  expect_broadcast(at, 2);
  if (at.has(2)) at.expect_same_dtype(0, 2);
  at.output(at.dtype(1), at.shape(0));
}

/// dscale = sum of dy (x - zero_point) over the elements that share a scale; integers have no gradient.
void dequantize_gradient(Gradient& at) {
  if (!at.needs(1)) return;
  const DType dtype = at.input(1).dtype();
  Value centred = ops::cast(at.input(0), dtype);
  if (at.input(2).present()) centred = ops::sub(centred, ops::cast(at.input(2), dtype));
  at.set(1, unbroadcast(ops::mul(at.dy(), centred), at.input(1).shape()));
}

void infer_dynamic(Inference& at) {
  at.expect_inputs(1, 1);
  if (at.dtype(0) != DType::f32) at.fail(fmt::format("expected x of f32, got {}", at.str(0)));
  at.output(DType::u8, at.shape(0));
  at.output(DType::f32, {});
  at.output(DType::u8, {});
}

}  // namespace

extern const OpRules rules_quantize_linear, rules_dequantize_linear, rules_dynamic_quantize_linear;
const OpRules rules_quantize_linear{
    "y = saturate(round(x / scale) + zero_point), ties to even; NaN becomes 0. The quotient is rounded to T, or to f32 if T has 16 bits. "
    "scale and zero_point broadcast to x, as ONNX's of a tensor, an axis or blocks do after Reshape or Expand.",
    infer_quantize, PrecisionClass::fp32, per_element<3>};
const OpRules rules_dequantize_linear{
    "y = (x - zero_point) scale, x and zero_point converted to T first, or to f32 if T has 16 bits. scale and zero_point broadcast to x.",
    infer_dequantize, PrecisionClass::fp32, per_element<2>, dequantize_gradient};
const OpRules rules_dynamic_quantize_linear{
    "scale = (high - low) / 255, low = min(0, min x) and high = max(0, max x), 1 / 255 if both are 0; zero_point = round(-low / scale) "
    "saturated to [0, 255]; y = saturate(round(x / scale) + zero_point). Ties are rounded to even. x is finite.",
    infer_dynamic, PrecisionClass::fp32, per_element<5>};

}  // namespace graph

namespace ops {

Value quantize_linear(Value x, Value scale, Value zero_point, DType to) {
  tenon_attributes_cast attributes{};
  attributes.to = static_cast<tenon_dtype>(to);
  std::vector<Value> operands{x, scale};
  if (zero_point.present()) operands.push_back(zero_point);
  return graph::apply_op(TENON_OP_QuantizeLinear, operands, Attributes::of(attributes));
}

Value dequantize_linear(Value q, Value scale, Value zero_point) {
  std::vector<Value> operands{q, scale};
  if (zero_point.present()) operands.push_back(zero_point);
  return graph::apply_op(TENON_OP_DequantizeLinear, operands);
}

DynamicQuantization dynamic_quantize_linear(Value x) {
  const std::vector<Value> results = x.graph().apply(TENON_OP_DynamicQuantizeLinear, {x});
  return {results[0], results[1], results[2]};
}

}  // namespace ops
}  // namespace tenon
