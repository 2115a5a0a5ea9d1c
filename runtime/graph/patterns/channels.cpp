// SPDX-License-Identifier: Apache-2.0
// graph/patterns/channels.cpp - scales and shifts per channel after convolutions and products, such as a batch norm in evaluation: they
// move to the weights, which are computed once instead of in each run. graph/fold_batch_norm.cpp does the same for BatchNormalization after
// Conv.
#include <tenon/functions.h>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/patterns/records.h"

namespace tenon::graph::patterns {
namespace {

/// The result of a convolution or product with the weights w: (O, ...) of Conv, (C, O / groups, ...) of ConvTranspose, (K, O) or (O, K) of
/// products.
const Pattern& layer() {
  static const Pattern pattern = made_by(Role::layer, {TENON_OP_Conv, TENON_OP_ConvTranspose, TENON_OP_Gemm, TENON_OP_MatMul});
  return pattern;
}

/// The same, or with something added.
Pattern shifted_layer() {
  return either({layer(), op(TENON_OP_Add, {layer(), any(Role::addend)})});
}

/// The axis of the channels in the layer's result.
std::size_t channel_axis(const Match& match) {
  const tenon_op name = match.net.node_of(match.id(Role::layer)).op;
  return name == TENON_OP_Gemm || name == TENON_OP_MatMul ? match.shape(Role::layer).rank() - 1 : 1;
}

/// True for a value that does not change between runs and has one element or one for each channel.
bool is_per_channel(const Match& match, ValueId v) {
  const Shape &shape = match.net.shape(v), &result = match.shape(Role::layer);
  if (!match.net.is_fixed(v) || shape.rank() > result.rank()) return false;
  const std::size_t leading = result.rank() - shape.rank();
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    const bool is_channels = leading + i == channel_axis(match) && shape[i] == result[leading + i];
    if (shape[i] != 1 && !is_channels) return false;
  }
  return true;
}

/// Operand i of a node; no_id if it is absent.
ValueId operand(const NodeInfo& node, std::size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : no_id;
}

/// True if the weights of the layer can take over a scale and a shift.
bool is_foldable(const Match& match) {
  const NodeInfo& node = match.net.node_of(match.id(Role::layer));
  const Shape& result = match.shape(Role::layer);
  if (!match.net.is_fixed(node.inputs[1]) || result.rank() < 2 || result.count() == 0) return false;
  if (match.shape(Role::layer) != match.net.shape(match.result())) return false;
  if (node.op == TENON_OP_MatMul && match.net.shape(node.inputs[1]).rank() != 2) return false;
  const ValueId bias = operand(node, 2);
  if (bias != no_id && !match.net.is_fixed(bias)) return false;
  if (bias != no_id && node.op == TENON_OP_Gemm && !is_per_channel(match, bias)) return false;
  return !match.has(Role::addend) || is_per_channel(match, match.id(Role::addend));
}

/// (n) for a value of one element or one for each channel.
Value as_vector(Value v) {
  const Shape flat{v.shape().count()};
  return v.shape() == flat ? v : ops::reshape(v, flat);
}

Value sum(Value a, Value b) {
  if (!a.present()) return b;
  return b.present() ? ops::add(a, b) : a;
}

/// What the layer adds to each channel: (n), or absent.
Value shift_of(const Match& match) {
  const NodeInfo node = match.net.node_of(match.id(Role::layer));  // a copy: nodes are added
  Value shift;
  if (operand(node, 2) != no_id) shift = as_vector(match.of(node.inputs[2]));
  if (node.op == TENON_OP_Gemm && shift.present()) {
    const double beta = node.attributes.as<tenon_attributes_gemm>().beta;
    if (beta == 0) shift = {};
    if (beta != 0 && beta != 1) shift = ops::mul(shift, beta);
  }
  return sum(shift, match.has(Role::addend) ? as_vector(match.value(Role::addend)) : Value());
}

using Binary = Value (*)(Value a, Value b);

/// f(w, factor of each output channel) for a factor (n).
Value weights_of(const Match& match, Binary f, Value factor) {
  const NodeInfo node = match.net.node_of(match.id(Role::layer));
  const Value w = match.of(node.inputs[1]);
  const Shape shape = w.shape();
  const std::int64_t count = factor.shape().count();
  if (count == 1) return f(w, ops::reshape(factor, Shape{}));
  switch (node.op) {
    case TENON_OP_Conv: {
      Shape spread{count};
      while (spread.rank() < shape.rank()) spread.push_back(1);
      return f(w, ops::reshape(factor, spread));
    }
    case TENON_OP_ConvTranspose: {
      const std::int64_t groups = node.attributes.as<tenon_attributes_conv>().groups;
      const Shape grouped{groups, shape[0] / groups, shape[1], shape.count() / (shape[0] * shape[1])};
      return ops::reshape(f(ops::reshape(w, grouped), ops::reshape(factor, Shape{groups, 1, shape[1], 1})), shape);
    }
    case TENON_OP_Gemm:
      if (node.attributes.as<tenon_attributes_gemm>().trans_b != 0) return f(w, ops::reshape(factor, Shape{count, 1}));
      return f(w, factor);
    default:
      return f(w, factor);
  }
}

/// The layer with other weights and another shift (n), which may be absent.
Value layer_with(const Match& match, Value w, Value shift) {
  const NodeInfo node = match.net.node_of(match.id(Role::layer));
  const Shape result = match.shape(Role::layer);
  const Shape channels{result[channel_axis(match)]};
  if (shift.present() && shift.shape() != channels) shift = ops::expand(shift, channels);
  if (node.op == TENON_OP_MatMul) return sum(ops::matmul(match.of(node.inputs[0]), w), shift);
  std::vector<Value> operands{match.of(node.inputs[0]), w};
  if (shift.present()) operands.push_back(shift);
  Attributes attributes = node.attributes;
  if (node.op == TENON_OP_Gemm) {
    tenon_attributes_gemm gemm = attributes.as<tenon_attributes_gemm>();
    gemm.beta = 1;
    attributes = Attributes::of(gemm);
  }
  NodeOptions options;
  options.shape = result;  // that of ConvTranspose does not follow from its operands
  return match.graph.apply(node.op, operands, attributes, options)[0];
}

bool is_convolution(const Match& match) {
  const tenon_op name = match.net.node_of(match.id(Role::layer)).op;
  return name == TENON_OP_Conv || name == TENON_OP_ConvTranspose;
}

/// The weights of products are large, and would be kept twice to save little.
bool scale_fits(Match& match) {
  if (!is_convolution(match) || !is_foldable(match)) return false;
  return is_per_channel(match, match.has(Role::scale) ? match.id(Role::scale) : match.id(Role::divisor));
}

Value with_scale(const Match& match) {
  const bool divides = match.has(Role::divisor);
  const Binary f = divides ? static_cast<Binary>(ops::div) : static_cast<Binary>(ops::mul);
  const Value factor = as_vector(match.value(divides ? Role::divisor : Role::scale));
  const Value shift = shift_of(match);
  return layer_with(match, weights_of(match, f, factor), shift.present() ? f(shift, factor) : shift);
}

/// Products take over a shift in the plan: backends add a bias along the last dimension themselves.
bool shift_fits(Match& match) {
  if (!is_convolution(match) || !is_foldable(match)) return false;
  return is_per_channel(match, match.has(Role::bias) ? match.id(Role::bias) : match.id(Role::subtrahend));
}

Value with_shift(const Match& match) {
  const bool subtracts = match.has(Role::subtrahend);
  const Value other = as_vector(match.value(subtracts ? Role::subtrahend : Role::bias));
  const Value shift = sum(shift_of(match), subtracts ? ops::neg(other) : other);
  return layer_with(match, match.of(match.net.node_of(match.id(Role::layer)).inputs[1]), shift);
}

bool batch_norm_fits(Match& match) {
  const NodeInfo &norm = match.net.node(match.root), &node = match.net.node_of(match.id(Role::layer));
  if (node.op == TENON_OP_Conv && !match.has(Role::addend)) return false;  // fold_batch_norm does it
  if (!is_foldable(match)) return false;
  if (norm.attributes.as<tenon_attributes_batch_norm>().axis != static_cast<std::int64_t>(channel_axis(match))) return false;
  for (const Role role : {Role::scale, Role::bias, Role::mean, Role::variance}) {
    const ValueId v = match.id(role);
    // statistics have more precision than weights of 16 bits
    if (!match.net.is_fixed(v) || match.net.info(v).dtype != match.net.info(node.inputs[1]).dtype) return false;
  }
  return true;
}

/// With s = scale / sqrt(variance + epsilon): w' = w s, b' = (b - mean) s + bias.
Value with_batch_norm(const Match& match) {
  const double epsilon = match.net.node(match.root).attributes.as<tenon_attributes_batch_norm>().epsilon;
  const Value mean = match.value(Role::mean), own = shift_of(match);
  const Value factor = ops::div(match.value(Role::scale), ops::sqrt(ops::add(match.value(Role::variance), epsilon)));
  const Value centred = own.present() ? ops::sub(own, mean) : ops::neg(mean);
  return layer_with(match, weights_of(match, ops::mul, factor), ops::add(ops::mul(centred, factor), match.value(Role::bias)));
}

}  // namespace

const std::vector<Record>& channel_records() {
  static const std::vector<Record> records = {
      {"BatchNormalization", "Keras and PyTorch, after ConvTranspose and dense layers",
       op(TENON_OP_BatchNormalization, {shifted_layer(), any(Role::scale), any(Role::bias), any(Role::mean), any(Role::variance)}),
       batch_norm_fits, with_batch_norm, true},
      {"Scale", "tf2onnx and Paddle, for a batch norm in evaluation: Mul and Add with an element for each channel",
       either({op(TENON_OP_Mul, {shifted_layer(), any(Role::scale)}), op(TENON_OP_Div, {shifted_layer(), any(Role::divisor)})}), scale_fits,
       with_scale, true},
      {"Bias", "Paddle and Caffe2, where a bias is no operand of Conv",
       either({op(TENON_OP_Add, {layer(), any(Role::bias)}), op(TENON_OP_Sub, {layer(), any(Role::subtrahend)})}), shift_fits, with_shift,
       true},
  };
  return records;
}

}  // namespace tenon::graph::patterns
