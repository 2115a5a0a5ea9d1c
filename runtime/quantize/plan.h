// SPDX-License-Identifier: Apache-2.0
// quantize/plan.h - which nodes of a graph are computed with integers, and which values are quantised for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <tenon/graph.h>
#include <tenon/quantize.h>

#include "quantize/readers.h"

namespace tenon::quantize {

/// What a node does with quantised operands.
enum class Role : std::uint8_t {
  none,       ///< it stays in f32
  product,    ///< of an activation and constant weights: Conv, MatMul, Gemm
  bias,       ///< adds a constant to a product; the sum has the product's scale, and nothing is rounded before it
  moves,      ///< its results are elements of its operands: one scale for all
  clips,      ///< Relu, Clip
  computes,   ///< its result has a scale of its own: Add, pools of means
  attention,  ///< a product of two activations in an attention, whose result is in f32
};

/// The constant operands of a product.
struct Product {
  std::int64_t weight_axis = -1;  ///< of output channels; -1: one scale for all weights
  bool has_bias = false;
};
/// Operands of a product by their indices.
inline constexpr std::size_t activation_operand = 0, weight_operand = 1, bias_operand = 2;
/// A value that is quantised, with the node that reads it first.
struct QuantizedValue {
  ValueId value = no_id;
  std::size_t group = 0;  ///< values of a group have one scale
  NodeId first_reader = no_id;
  /// a node of Role::clips that computes it, if only it reads its operand: integers saturate at its bounds in its place if they can
  NodeId clip = no_id;
  bool all_readers = false;  ///< nodes in f32 read the quantised value, too: integers computed it
};

/// Nodes and values that are quantised.
struct Plan {
  std::vector<Role> roles;             ///< by NodeId
  std::map<NodeId, Product> weights;   ///< of nodes with Role::product
  std::vector<QuantizedValue> values;  ///< in order of ValueId
  std::size_t groups = 0;
  std::vector<NodeReport> products;  ///< all nodes with weights
  bool quantizes_anything() const;
};

/// Plans for a prepared graph. A product is quantised if Options select it. Any other node is if all its operands were computed with
/// integers, and a quantised product needs its result. Results of Conv are quantised, as ONNX Runtime has no integer convolution with a
/// result of floats; those of MatMul and Gemm only for a quantised reader. Outputs of the graph never are. Errors  a glob or an operator
/// that matches nothing.
Plan plan(const Graph& graph, const Options& options);

/// Whether Options select the products of attention.
bool quantizes_attention(const Options& options);

}  // namespace tenon::quantize
