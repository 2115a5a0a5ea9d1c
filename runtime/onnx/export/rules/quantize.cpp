// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/quantize.cpp - quantisation. Tenon's scales broadcast, where those of ONNX belong to a tensor or an axis.
#include <limits>
#include <optional>

#include "onnx/export/rules.h"

namespace tenon::onnx::exporting {
namespace {

/// How operand 1, which broadcasts to operand 0, is ONNX's scale: a scalar, or a list along an axis.
struct Granularity {
  Sizes shape;  ///< () or (n)
  std::int64_t axis = 0;
};
/// Nothing if ONNX has no such scale.
std::optional<Granularity> granularity_of(Node& node) {
  const Sizes x = node.input_sizes(0), scale = node.input_sizes(1);
  const Size one{1, false};
  Granularity found;
  for (std::size_t i = 0; i < scale.size(); ++i) {
    if (scale[i] == one) continue;
    if (!found.shape.empty()) return {};
    found = {{scale[i]}, static_cast<std::int64_t>(x.size() - scale.size() + i)};
  }
  // A zero point of another shape has more elements than its scale, or fewer.
  if (node.has_input(2) && node.input_sizes(2) != scale) return {};
  return found;
}

/// Whether ONNX has the op for these dtypes at this opset, with the arithmetic of Tenon.
bool has_op(const Node& node, DType floating, DType quantized) {
  const bool narrow = quantized == DType::i8 || quantized == DType::u8;
  return floating == DType::f32 && (narrow || quantized == DType::i32 || node.opset() >= 21);
}

void quantize_linear(Node& node) {
  const DType to = node.output_dtype(), dtype = node.input(0).dtype;
  const std::optional<Granularity> granularity = granularity_of(node);
  if (granularity && has_op(node, dtype, to)) {
    std::vector<Term> operands = {node.input(0), node.reshaped_input(1, granularity->shape)};
    if (node.has_input(2)) {
      operands.push_back(node.reshaped_input(2, granularity->shape));
    } else if (to != DType::u8) {
      operands.push_back(node.expand(node.scalar(to, 0), {}, granularity->shape));
    }
    return node.output(0, node.op("QuantizeLinear", operands, {integer("axis", granularity->axis)}, to));
  }
  const Term x = node.wide_input(0);
  Term q = node.op("Round", {node.op("Div", {x, node.wide_input(1)})});
  if (node.has_input(2)) q = node.op("Add", {q, node.cast(node.input(2), q.dtype)});
  const auto bounds = [to]() -> std::pair<double, double> {
    switch (to) {
      case DType::i8:
        return {-128, 127};
      case DType::u8:
        return {0, 255};
      case DType::i16:
        return {-32768, 32767};
      default:
        return {0, 65535};
    }
  }();
  node.output(0, node.cast(node.op("Clip", {q, node.scalar(q.dtype, bounds.first), node.scalar(q.dtype, bounds.second)}), to));
}

void dequantize_linear(Node& node) {
  const DType from = node.input(0).dtype, dtype = node.output_dtype();
  const std::optional<Granularity> granularity = granularity_of(node);
  if (granularity && has_op(node, dtype, from) && (from != DType::i32 || !node.has_input(2))) {
    std::vector<Term> operands = {node.input(0), node.reshaped_input(1, granularity->shape)};
    if (node.has_input(2)) operands.push_back(node.reshaped_input(2, granularity->shape));
    return node.output(0, node.op("DequantizeLinear", operands, {integer("axis", granularity->axis)}, dtype));
  }
  const Term scale = node.wide_input(1);
  Term x = node.cast(node.input(0), scale.dtype);
  if (node.has_input(2)) x = node.op("Sub", {x, node.cast(node.input(2), scale.dtype)});
  node.output(0, node.op("Mul", {x, scale}));
}

void dynamic_quantize_linear(Node& node) {
  const std::vector<Term> results =
      node.op_with_results({"DynamicQuantizeLinear"}, {node.input(0)}, {}, {DType::u8, DType::f32, DType::u8});
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (node.needs_output(i)) node.output(i, results[i]);
  }
}

void matmul_integer(Node& node) {
  node.output(0, node.op("MatMulInteger", node.inputs(), {}, DType::i32));
}

void qlinear_matmul(Node& node) {
  node.output(0, node.op("QLinearMatMul", node.inputs(), {}, node.output_dtype()));
}

/// The op is com.microsoft's, whose operand 4 is the order of the groups.
void matmul_nbits(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_nbits>();
  const Sizes a = node.input_sizes(0), b = node.input_sizes(1);
  std::vector<Term> operands = {node.input(0), node.input(1), node.input(2)};
  if (node.has_input(3) || node.has_input(4)) operands.push_back(node.has_input(3) ? node.input(3) : Term{});
  if (node.has_input(4)) operands.insert(operands.end(), {Term{}, node.input(4)});
  const std::vector<AttributeRecord> records = {integer("K", node.fixed(a.back(), "the size of a row")),
                                                integer("N", node.fixed(b.front(), "the number of rows of weights")),
                                                integer("bits", attributes.bits), integer("block_size", attributes.block_size)};
  node.output(0, node.op_with_results({"MatMulNBits", "com.microsoft", 1}, operands, records, {node.output_dtype()})[0]);
}

}  // namespace

const std::vector<Rule>& quantize_rules() {
  static const std::vector<Rule> rules = {
      {TENON_OP_QuantizeLinear, quantize_linear},
      {TENON_OP_DequantizeLinear, dequantize_linear},
      {TENON_OP_DynamicQuantizeLinear, dynamic_quantize_linear},
      {TENON_OP_MatMulInteger, matmul_integer},
      {TENON_OP_QLinearMatMul, qlinear_matmul},
      {TENON_OP_MatMulNBits, matmul_nbits},
  };
  return rules;
}

}  // namespace tenon::onnx::exporting
