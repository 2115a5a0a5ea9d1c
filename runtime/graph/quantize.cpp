// SPDX-License-Identifier: Apache-2.0
// quantize.cpp - nets of dequantisation, ops of floats and quantisation as ops of 8-bit integers.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <tenon/functions.h>

#include "graph/op.h"
#include "graph/passes.h"

namespace tenon::graph {
namespace {

/// Integers that a node of DequantizeLinear reads, or that one of QuantizeLinear makes, by their scale and zero point.
struct Quantization {
  ValueId q = no_id, scale = no_id, zero_point = no_id;  ///< zero_point may be absent
};

bool is_byte(DType dtype) {
  return dtype == DType::i8 || dtype == DType::u8;
}

/// The parts that both passes of this file share.
class QuantizedGraph {
 public:
  QuantizedGraph(GraphEditor& editor, Graph& graph) : editor_(editor), graph_(graph), readers_(editor.values().size()) {
    for (NodeId n = 0; n < editor.node_count(); ++n) {
      for (const ValueId input : editor.node(n).inputs) {
        if (input != no_id) readers_[input].push_back(n);
      }
    }
    leaves_.resize(editor.values().size());
    for (const GraphOutput& output : graph.outputs()) leaves_[output.value] = true;
    for (const GraphUpdate& update : graph.updates()) leaves_[update.value] = true;
  }

 protected:
  GraphEditor& editor_;
  Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> leaves_;  ///< outputs and updates

  const ValueInfo& info(ValueId v) const { return editor_.info(v); }
  Value value(ValueId v) const { return v == no_id ? Value() : Value(&graph_, v); }
  bool is_scalar(ValueId v) const { return info(v).shape.count() == 1; }

  /// What a DequantizeLinear in f32 makes `v` of.
  std::optional<Quantization> dequantized(ValueId v) {
    const NodeInfo* const node = v == no_id ? nullptr : editor_.producer(v);
    if (node == nullptr || node->op != TENON_OP_DequantizeLinear || info(v).dtype != DType::f32) return {};
    return Quantization{node->inputs[0], node->inputs[1], node->inputs.size() > 2 ? node->inputs[2] : no_id};
  }
  /// The same of bytes with one scale and one zero point.
  std::optional<Quantization> dequantized_tensor(ValueId v) {
    const std::optional<Quantization> by = dequantized(v);
    if (!by || !is_byte(info(by->q).dtype) || !is_scalar(by->scale)) return {};
    return by->zero_point == no_id || is_scalar(by->zero_point) ? by : std::nullopt;
  }
  /// The result of a QuantizeLinear of f32 with one scale and one zero point.
  std::optional<Quantization> quantized_tensor(const NodeInfo& node) const {
    if (node.op != TENON_OP_QuantizeLinear || info(node.inputs[0]).dtype != DType::f32 || !is_byte(info(node.outputs[0]).dtype)) return {};
    const Quantization by{node.outputs[0], node.inputs[1], node.inputs.size() > 2 ? node.inputs[2] : no_id};
    if (!is_scalar(by.scale) || (by.zero_point != no_id && !is_scalar(by.zero_point))) return {};
    return by;
  }

  /// A constant's elements, reshaped or not.
  std::optional<std::vector<double>> known(ValueId v) {
    for (const NodeInfo* node = editor_.producer(v); node != nullptr && node->op == TENON_OP_Reshape; node = editor_.producer(v)) {
      v = node->inputs[0];
    }
    const ValueInfo& of = info(v);
    if (of.kind != ValueKind::constant || !of.constant.defined() || !of.constant.on_host()) return {};
    return of.constant.to(DType::f64).to_vector<double>();
  }
  /// The element of a scalar constant; of an absent value, 0.
  std::optional<double> number(ValueId v) {
    if (v == no_id) return 0.0;
    const auto elements = known(v);
    return elements && elements->size() == 1 ? std::optional(elements->front()) : std::nullopt;
  }
  bool same_number(ValueId a, ValueId b) {
    if (a == b) return true;
    const auto x = number(a), y = number(b);
    return x && y && *x == *y;
  }
  bool same_parameters(const Quantization& a, const Quantization& b) {
    return info(a.q).dtype == info(b.q).dtype && same_number(a.scale, b.scale) && same_number(a.zero_point, b.zero_point);
  }

  /// The zero point as an operand of the integer ops: () for one element, else a list; of an absent one, 0.
  Value zero_point(const Quantization& by) { return by.zero_point == no_id ? scalar(graph_, info(by.q).dtype, 0) : list(by.zero_point); }
  /// A scale or zero point as () or (n).
  Value list(ValueId v) {
    const std::int64_t count = info(v).shape.count();
    const Shape shape = count == 1 ? Shape{} : Shape{count};
    return info(v).shape == shape ? value(v) : ops::reshape(value(v), shape);
  }
  /// Integers with their parameters as the integer ops read them.
  ops::Quantized operand(const Quantization& by) { return {value(by.q), list(by.scale), zero_point(by)}; }
};

/// DequantizeLinear before ops that only move elements becomes one after them, which moves bytes, and disappears before a QuantizeLinear
/// with its parameters.
class MoveIntegers : QuantizedGraph {
 public:
  using QuantizedGraph::QuantizedGraph;

  /// One step of each chain. Returns whether anything changed.
  bool run() {
    bool changed = false;
    for (NodeId n = 0; n < editor_.node_count(); ++n) changed = requantises_same(n) || moves(n) || changed;
    return changed;
  }

 private:
  /// saturate(round((q - z) s / s) + z) is q: the quotient is within 2^-15 of an integer of 9 bits.
  bool requantises_same(NodeId n) {
    const NodeInfo& node = editor_.node(n);
    const auto to = quantized_tensor(node);
    if (!to) return false;
    const auto from = dequantized_tensor(node.inputs[0]);
    if (!from || !same_parameters(*from, *to)) return false;
    return editor_.redirect(to->q, from->q);
  }

  bool only_moves(const NodeInfo& node) const {
    switch (node.op) {
      case TENON_OP_Reshape:
      case TENON_OP_Flatten:
      case TENON_OP_Transpose:
      case TENON_OP_Slice:
      case TENON_OP_Concat:
        return true;
      case TENON_OP_MaxPool:  // in order, as scales are positive
        return node.outputs.size() == 1 || node.outputs[1] == no_id || (readers_[node.outputs[1]].empty() && !leaves_[node.outputs[1]]);
      default:
        return false;
    }
  }

  bool moves(NodeId n) {
    const NodeInfo node = editor_.node(n);
    if (!only_moves(node) || leaves_[node.outputs[0]] || readers_[node.outputs[0]].empty()) return false;
    const auto first = dequantized_tensor(node.inputs[0]);
    if (!first) return false;
    std::vector<ValueId> integers;
    for (const ValueId input : node.inputs) {
      const auto by = dequantized_tensor(input);
      if (!by || !same_parameters(*first, *by)) return false;
      integers.push_back(by->q);
    }
    const auto scale = number(first->scale);
    if (node.op == TENON_OP_MaxPool && (!scale || *scale <= 0)) return false;
    const ValueId made = editor_.build(n, [&] {
      std::vector<Value> operands;
      for (const ValueId input : integers) operands.push_back(value(input));
      const Value moved = apply_again(graph_, node, operands, graph_)[0];
      return ops::dequantize_linear(moved, value(first->scale), value(first->zero_point));
    });
    return editor_.redirect(node.outputs[0], made);
  }
};

/// Products between DequantizeLinear and QuantizeLinear.
class FuseProducts : QuantizedGraph {
 public:
  using QuantizedGraph::QuantizedGraph;

  void run() {
    for (NodeId n = 0; n < editor_.node_count(); ++n) fuse(n);
  }

 private:
  /// Scale and zero point of the weights b of a product: one for all, or one for each of the `lines` lines of dimension `axis`.
  bool fits_lines(const Quantization& by, std::size_t axis) const {
    const Shape& shape = info(by.q).shape;
    const auto fits = [&](ValueId v) {
      if (v == no_id || is_scalar(v)) return true;
      const Shape& of = info(v).shape;
      const std::size_t missing = shape.rank() - of.rank();
      return axis >= missing && of[axis - missing] == shape[axis] && of.count() == shape[axis];
    };
    return is_byte(info(by.q).dtype) && fits(by.scale) && fits(by.zero_point);
  }

  /// A bias that the integer ops can take: absent, or floats that are the same in each run, one for each line; or made of i32.
  bool fits_bias(ValueId bias, std::int64_t lines) {
    if (bias == no_id) return true;
    if (info(bias).dtype != DType::f32 || info(bias).shape.count() != lines) return false;
    const auto by = dequantized(bias);
    if (!by) return info(bias).kind == ValueKind::constant || info(bias).kind == ValueKind::parameter;
    if (info(by->q).dtype != DType::i32) return false;
    if (by->zero_point == no_id) return true;
    const auto zeros = known(by->zero_point);
    return zeros && std::all_of(zeros->begin(), zeros->end(), [](double z) { return z == 0; });
  }
  /// The bias in the scale of the products, x_scale w_scale, as i32: the integers themselves if that is their scale.
  Value bias_operand(ValueId bias, const Quantization& x, const Quantization& w) {
    if (bias == no_id) return {};
    const auto by = dequantized(bias);
    const Value scale = ops::mul(list(x.scale), list(w.scale));
    const auto integers = [](Value floats) { return ops::cast(ops::round(floats), DType::i32); };
    if (!by) return integers(ops::div(list(bias), scale));
    const Value q = list(by->q), ratio = ops::div(list(by->scale), scale);
    const Value is_one = ops::less_equal(ops::abs(ops::sub(ratio, 1)), scalar(graph_, DType::f32, 1e-5));
    return ops::where(is_one, q, integers(ops::mul(ops::cast(q, DType::f32), ratio)));
  }

  /// The quantised numbers of `low` and `high` lie outside the range of the result, which saturates there.
  bool saturates(const Quantization& y, double low, double high) {
    const auto scale = number(y.scale), zero_point = number(y.zero_point);
    if (!scale || !zero_point || *scale <= 0) return false;
    const bool is_signed = info(y.q).dtype == DType::i8;
    return std::nearbyint(low / *scale) + *zero_point <= (is_signed ? -128 : 0) &&
           std::nearbyint(high / *scale) + *zero_point >= (is_signed ? 127 : 255);
  }

  /// The QuantizeLinear that alone reads `v`, or reads what a Relu or Clip makes of it that saturation implies.
  std::optional<NodeId> quantizer_of(ValueId v, const std::string& device) {
    double low = -HUGE_VAL, high = HUGE_VAL;
    while (readers_[v].size() == 1 && !leaves_[v]) {
      const NodeId n = readers_[v][0];
      const NodeInfo& node = editor_.node(n);
      if (node.device != device) return {};
      if (const auto y = quantized_tensor(node)) {
        const bool bounded = low != -HUGE_VAL || high != HUGE_VAL;
        return !bounded || saturates(*y, low, high) ? std::optional(n) : std::nullopt;
      }
      if (node.op == TENON_OP_Relu) {
        low = std::max(low, 0.0);
      } else if (node.op == TENON_OP_Clip) {
        low = std::max(low, node.attributes.as<tenon_attributes_clip>().low);
        high = std::min(high, node.attributes.as<tenon_attributes_clip>().high);
      } else {
        return {};
      }
      v = node.outputs[0];
    }
    return {};
  }

  void fuse(NodeId n) {
    const NodeInfo node = editor_.node(n);
    const bool is_conv = node.op == TENON_OP_Conv, is_gemm = node.op == TENON_OP_Gemm;
    if (!is_conv && !is_gemm && node.op != TENON_OP_MatMul) return;
    const auto x = dequantized_tensor(node.inputs[0]), w = dequantized(node.inputs[1]);
    if (!x || !w) return;
    const auto quantizer = quantizer_of(node.outputs[0], node.device);
    const ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : no_id;
    if (is_conv) return fuse_conv(node, *x, *w, bias, quantizer);
    if (is_gemm) return fuse_gemm(n, *x, *w, bias, quantizer);
    const Shape& b = info(w->q).shape;
    if (!fits_lines(*w, b.rank() == 0 ? 0 : b.rank() - 1)) return;
    if (quantizer) {
      return replace(*quantizer, [&](Value y_scale, Value y_zero_point) {
        return ops::qlinear_matmul(operand(*x), operand(*w), y_scale, y_zero_point);
      });
    }
    dequantize_sums(n, *x, *w, [&] { return ops::matmul_integer(value(x->q), value(w->q), zero_point(*x), zero_point(*w)); });
  }

  /// Makes the sums of a product in i32, dequantised, the result of node n: nothing quantises it.
  template <class Build>
  void dequantize_sums(NodeId n, const Quantization& x, const Quantization& w, const Build& sums) {
    const ValueId y = editor_.node(n).outputs[0];
    editor_.redirect(y, editor_.build(n, [&] { return ops::dequantize_linear(sums(), ops::mul(list(x.scale), list(w.scale))); }));
  }

  /// Makes `build(y_scale, y_zero_point)` the result of a QuantizeLinear.
  template <class Build>
  void replace(NodeId quantizer, const Build& build) {
    const Quantization y = *quantized_tensor(editor_.node(quantizer));
    editor_.redirect(y.q, editor_.build(quantizer, [&] { return build(list(y.scale), zero_point(y)); }));
  }

  void fuse_conv(const NodeInfo& node, const Quantization& x, const Quantization& w, ValueId bias, std::optional<NodeId> quantizer) {
    const std::int64_t filters = info(w.q).shape[0];
    if (!quantizer || !fits_bias(bias, filters) || !fits_lines(w, 0)) return;
    replace(*quantizer, [&](Value y_scale, Value y_zero_point) {
      const ops::Quantized image = operand(x), kernel = operand(w);
      std::vector<Value> operands{image.q, image.scale, image.zero_point, kernel.q, kernel.scale, kernel.zero_point, y_scale, y_zero_point};
      if (bias != no_id) operands.push_back(bias_operand(bias, x, w));
      return apply_op(TENON_OP_QLinearConv, operands, node.attributes);
    });
  }

  /// x (M, K), w (N, K) or (K, N): a convolution of M images of one pixel, which takes a bias.
  void fuse_gemm(NodeId n, const Quantization& x, const Quantization& w, ValueId bias, std::optional<NodeId> quantizer) {
    const auto attributes = editor_.node(n).attributes.as<tenon_attributes_gemm>();
    const bool trans_b = attributes.trans_b != 0;
    if (attributes.trans_a != 0 || attributes.alpha != 1 || (bias != no_id && attributes.beta != 1)) return;
    const std::size_t axis = trans_b ? 0 : 1;
    const std::int64_t rows = info(x.q).shape[0], k = info(x.q).shape[1], filters = info(w.q).shape[axis];
    if (rows == 0 || k == 0 || filters == 0 || !fits_bias(bias, filters) || !fits_lines(w, axis)) return;
    const auto matrix = [&](bool filters_first) { return trans_b == filters_first ? value(w.q) : ops::transpose(value(w.q)); };
    if (quantizer) {
      return replace(*quantizer, [&](Value y_scale, Value y_zero_point) {
        ops::Quantized image = operand(x), kernel = operand(w);
        image.q = ops::reshape(image.q, Shape{rows, k, 1});
        kernel.q = ops::reshape(matrix(true), Shape{filters, k, 1});
        return ops::reshape(ops::qlinear_conv(image, kernel, y_scale, y_zero_point, bias_operand(bias, x, w)), Shape{rows, filters});
      });
    }
    dequantize_sums(n, x, w, [&] {
      const Value sums = ops::matmul_integer(value(x.q), matrix(false), zero_point(x), zero_point(w));
      return bias == no_id ? sums : ops::add(sums, bias_operand(bias, x, w));
    });
  }
};

}  // namespace

Graph fuse_quantized(Graph graph) {
  const auto quantizes = [](const NodeInfo& node) { return node.op == TENON_OP_DequantizeLinear; };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), quantizes)) return graph;
  for (bool changed = true; changed;) {
    GraphEditor editor(graph);
    changed = MoveIntegers(editor, graph).run();
    editor.finish();
  }
  GraphEditor editor(graph);
  FuseProducts(editor, graph).run();
  editor.finish();
  return graph;
}

}  // namespace tenon::graph
